# Two images from one file: `--target server` (the default) and `--target agent`.
# Both run as a user without rights and hold no build tools.

FROM python:3.11-slim-bookworm AS wheels
WORKDIR /src
COPY constraints.txt .
RUN pip install --no-cache-dir --constraint constraints.txt build hatchling editables
COPY pyproject.toml README.md CHANGELOG.md ./
COPY packaging ./packaging
COPY rooflight ./rooflight
COPY agent ./agent
COPY app ./app
COPY web ./web
COPY migrations ./migrations
RUN python -m build --wheel --no-isolation --outdir /wheels ./packaging \
 && python -m build --wheel --no-isolation --outdir /wheels .

FROM python:3.11-slim-bookworm AS base
ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN useradd --create-home --uid 10001 rooflight \
 && install --directory --owner=rooflight --group=rooflight /data /credentials
COPY constraints.txt /tmp/constraints.txt
WORKDIR /data

# The agent carries a CPU build of torch for its built-in workloads; on a GPU host it is installed into
# the environment that trains instead, beside that environment's own torch.
FROM base AS agent
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN pip install --constraint /tmp/constraints.txt --extra-index-url "$TORCH_INDEX" \
        "torch==$(sed -n 's/^torch==//p' /tmp/constraints.txt)+cpu"
RUN --mount=type=bind,from=wheels,source=/wheels,target=/wheels \
    pip install --constraint /tmp/constraints.txt --find-links /wheels "rooflight-server[agent]"
USER rooflight
ENV ROOFLIGHT_STATE=/data
ENTRYPOINT ["rooflight-agent"]
CMD ["--help"]

FROM base AS server
RUN --mount=type=bind,from=wheels,source=/wheels,target=/wheels \
    pip install --constraint /tmp/constraints.txt --find-links /wheels "rooflight-server[server]"
USER rooflight
ENV ROOFLIGHT_DATA=/data
VOLUME /data
EXPOSE 8585
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=5 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8585/healthz', timeout=2)"]
# In a container the loopback is nobody's: the service listens on all addresses of the container, which
# it only does once a token exists (docker-compose.yml makes one first).
ENTRYPOINT ["rooflight-server"]
CMD ["serve", "--host", "0.0.0.0", "--allow-remote"]
