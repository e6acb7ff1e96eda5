# distro-worker for NVIDIA GPUs of compute capability 8.0 and later, and distroctl. Build from the root of the checkout:
#   docker build -t distro/worker-cuda -f docker/worker-cuda.Dockerfile .
#   docker run --gpus all distro/worker-cuda --device cuda --aggregator HOST:PORT ...
#
# Of NVIDIA's image only the compiler is used. The CUDA libraries at run time are those that LibTorch's wheel pins, so that
# one version is in the process; the driver's come from the NVIDIA container runtime.
FROM docker.io/nvidia/cuda:13.0.1-devel-ubuntu24.04 AS toolkit

FROM debian:bookworm-slim AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN apt-get update && apt-get install -y --no-install-recommends \
      g++ cmake ninja-build ccache pkg-config ca-certificates python3 python3-venv \
      libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev \
      prometheus-cpp-dev libboost-dev libcli11-dev nlohmann-json3-dev libxxhash-dev libssl-dev \
    && rm -rf /var/lib/apt/lists/*
COPY --from=toolkit /usr/local/cuda-13.0 /usr/local/cuda
# LibTorch; the program finds it by this path, so the runtime stage has it at the same place.
COPY scripts/cuda-requirements.txt /tmp/requirements.txt
RUN python3 -m venv /opt/distro \
    && /opt/distro/bin/pip install --no-cache-dir --no-deps --require-hashes -r /tmp/requirements.txt
ENV DISTRO_TORCH_DIR=/opt/distro/lib/python3.11/site-packages/torch
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/root/.cache/ccache \
    cmake --preset release -DDISTRO_CUDA=ON -DBUILD_TESTING=OFF --log-level=WARNING \
    && cmake --build --preset release --target distro-worker distroctl \
    && strip build/release/bin/*
# The shared libraries, without headers, Python and static archives. Torch opens some of them only when it is used.
RUN mkdir /runtime \
    && find /opt/distro/lib -name '*.so*' ! -path '*/torch/lib/libtorch_python*' ! -name '*.cpython-*' -print0 \
       | xargs -0 cp -P --parents -t /runtime

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
LABEL org.opencontainers.image.title="distro-worker-cuda" \
      org.opencontainers.image.description="Trains in a DisTrO run, on NVIDIA GPUs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# What the NVIDIA container runtime gives the container.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 65532:65532
EXPOSE 7703
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/7703 && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && grep -q '^HTTP/1.1 200' <&3"]
ENTRYPOINT ["distro-worker", "--http=[::]:7703"]
CMD ["--help"]
