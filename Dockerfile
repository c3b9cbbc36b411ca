# One image for every role: `parley serve gateway|turns|internal|beat|flower`, `parley migrate`, `parley doctor`.
# Runs as an unprivileged user on a read-only root file system. Only /tmp must be writable.
ARG PYTHON_IMAGE=python:3.11.17-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
RUN python3 -m venv --without-pip /opt/parley
# Install dependencies first, so that source changes don't reinstall them.
COPY deploy/locked.txt locked.txt
RUN python3 -m pip --python /opt/parley/bin/python install --require-hashes --requirement locked.txt
COPY . .
RUN python3 -m pip --python /opt/parley/bin/python install --no-deps ./client . \
    && /opt/parley/bin/python -m compileall -q -j 0 /opt/parley/lib
# Train classifiers here instead of at each process's startup.
RUN OMP_NUM_THREADS=1 /opt/parley/bin/parley domain train travel analytics --into /opt/parley/trained

FROM ${PYTHON_IMAGE}
RUN groupadd --gid 10001 parley \
    && useradd --uid 10001 --gid parley --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin parley
COPY --from=build /opt/parley /opt/parley
ENV PATH=/opt/parley/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    OMP_NUM_THREADS=1 \
    OPENBLAS_NUM_THREADS=1 \
    PARLEY_HEARTBEAT_FILE=/tmp/parley.heartbeat \
    PARLEY_TRAINED_FOLDER=/opt/parley/trained
WORKDIR /opt/parley
USER 10001:10001
EXPOSE 8600 5555
ENTRYPOINT ["parley"]
CMD ["serve", "gateway"]
