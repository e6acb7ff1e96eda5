# distro-aggregator, and distroctl to inspect it from inside the container. Build from the root of the checkout:
#   docker build -t distro/aggregator -f docker/aggregator.Dockerfile .
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends \
      g++ cmake ninja-build ccache pkg-config \
      libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev \
      prometheus-cpp-dev libboost-dev libcli11-dev nlohmann-json3-dev libxxhash-dev libssl-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/root/.cache/ccache \
    cmake --preset release -DDISTRO_WORKER=OFF -DBUILD_TESTING=OFF --log-level=WARNING \
    && cmake --build --preset release --target distro-aggregator distro-archiver distroctl \
    && strip build/release/bin/*

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends \
      ca-certificates libgrpc++1.51 libprotobuf32 libabsl20220623 libprometheus-cpp-core1.0 libxxhash0 libssl3 \
    && apt-get clean && rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log \
    && install -d -o 65532 -g 65532 /data
COPY LICENSE /usr/share/doc/distro/LICENSE
COPY --from=build /src/build/release/bin/distro-aggregator /src/build/release/bin/distroctl /usr/bin/
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="distro-aggregator" \
      org.opencontainers.image.description="Holds a DisTrO training run: combines what workers send and streams the result to all" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
USER 65532:65532
EXPOSE 7700 7701
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/7701 && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && grep -q '^HTTP/1.1 200' <&3"]
ENTRYPOINT ["distro-aggregator", "--data_dir=/data", "--listen=[::]:7700", "--http=[::]:7701"]
CMD ["--help"]
