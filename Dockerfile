# A worker of perdure. The application's agents are mounted at /app, or copied there by an image
# built from this one:
#
#     FROM perdure
#     COPY support.py .
#     ENV PERDURE_AGENTS=support:agent

ARG PYTHON_VERSION=3.13

FROM python:${PYTHON_VERSION}-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
RUN python -m venv /venv
COPY pyproject.toml README.md LICENSE ./
COPY perdure ./perdure
COPY workflows ./workflows
COPY activities ./activities
RUN /venv/bin/pip install ".[anthropic,encryption,google,openai,postgres]"

FROM python:${PYTHON_VERSION}-slim
RUN groupadd --gid 10001 perdure \
    && useradd --uid 10001 --gid perdure --no-create-home --home-dir /app perdure \
    && install --directory --owner=perdure --group=perdure /app /var/lib/perdure
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PERDURE_ALIVE_FILE=/tmp/perdure-alive
WORKDIR /app
USER 10001:10001
# The worker lets running steps finish for PERDURE_GRACE seconds, 30 unless set. Whatever stops the
# container has to wait longer than that.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python", "-m", "perdure.liveness"]
ENTRYPOINT ["perdure"]
CMD ["worker"]
