"""Who may do what: API keys, browser logins, and sign-in by OpenID Connect.

Start with `keys`, which defines `Caller`, the value that every method of `server.service.Service` takes first. These
modules may import `server.store`, `server.timing`, `server.refusals` and the settings of `server.holder`.
"""
