"""Menuwatch's task queue in the benchmark hardbyte/postgresql-job-queue-benchmarking."""
