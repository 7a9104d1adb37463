// Follows a training without reloading the page; without script the page reloads itself.
async function follow() {
  const progress = document.getElementById("progress");
  if (progress.dataset.unfinished !== "yes") return;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = page.getElementById("progress");
    if (found && found.innerHTML !== progress.innerHTML) {
      progress.innerHTML = found.innerHTML;
      Object.assign(progress.dataset, found.dataset);
    }
  } catch {
    // The server is away, perhaps being restarted: ask again.
  }
  setTimeout(follow, 1000 * progress.dataset.seconds);
}
setTimeout(follow, 1000);
