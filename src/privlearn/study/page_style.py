"""How pages that stand alone look."""

CSS = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; }
body { max-width: 64rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.warning { border: 2px solid #a33; border-left-width: 10px; background: #fdf0ee; }
.warning { padding: .6rem 1rem; margin: 1rem 0; }
.models { display: grid; gap: 1rem 2rem; }
.models { grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
p span { white-space: nowrap; }
svg { width: 100%; height: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
th:first-child { text-align: left; position: sticky; left: 0; background: white; white-space: normal; }
tbody th { font-weight: normal; } tr.default > * { font-weight: bold; } td small { color: #666; font-weight: normal; }
footer { color: #666; font-size: .85rem; margin-top: 2rem; overflow-wrap: anywhere; }
"""
