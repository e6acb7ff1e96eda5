# distro-worker for CPUs, and distroctl. Build from the root of the checkout:
#   docker build -t distro/worker-cpu -f docker/worker-cpu.Dockerfile .
FROM debian:bookworm-slim AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN apt-get update && apt-get install -y --no-install-recommends \
      g++ cmake ninja-build ccache pkg-config ca-certificates python3 python3-venv \
      libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev \
      prometheus-cpp-dev libboost-dev libcli11-dev nlohmann-json3-dev libxxhash-dev libssl-dev \
    && rm -rf /var/lib/apt/lists/*
# LibTorch; the program finds it by this path, so the runtime stage has it at the same place.
COPY scripts/libtorch-requirements.txt /tmp/requirements.txt
RUN python3 -m venv /opt/distro \
    && /opt/distro/bin/pip install --no-cache-dir --no-deps --require-hashes -r /tmp/requirements.txt
ENV DISTRO_TORCH_DIR=/opt/distro/lib/python3.11/site-packages/torch
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/root/.cache/ccache \
    cmake --preset release -DBUILD_TESTING=OFF --log-level=WARNING \
    && cmake --build --preset release --target distro-worker distroctl \
    && strip build/release/bin/*
# Only the libraries that the program loads, not the Python packages around them.
RUN mkdir /runtime \
    && ldd build/release/bin/distro-worker | awk '$3 ~ "^/opt/" { print $3 }' | sort -u | xargs -r cp -L --parents -t /runtime

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends \
      ca-certificates libgomp1 libgrpc++1.51 libprotobuf32 libabsl20220623 libprometheus-cpp-core1.0 libxxhash0 libssl3 \
    && apt-get clean && rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log \
    && install -d -o 65532 -g 65532 /data
COPY LICENSE /usr/share/doc/distro/LICENSE
COPY --from=build /runtime /
COPY --from=build /src/build/release/bin/distro-worker /src/build/release/bin/distroctl /usr/bin/
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="distro-worker-cpu" \
      org.opencontainers.image.description="Trains in a DisTrO run, on CPUs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
USER 65532:65532
EXPOSE 7703
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/7703 && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && grep -q '^HTTP/1.1 200' <&3"]
ENTRYPOINT ["distro-worker", "--http=[::]:7703"]
CMD ["--help"]
