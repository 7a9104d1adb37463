"""The trusted learner as a service: a holder's data sets, and analysts who ask (docs/how-to/serve.md)."""
