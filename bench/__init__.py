"""Benchmarks. They reuse the scene library, check the physics they time, and never decide a test."""
