# Container image of Lockstep: the program, the libraries that it is linked with, CA certificates, and a user without
# privileges. It has no shell. `cargo xtask image` writes the same image without a container engine.
#
#   docker buildx build --platform linux/amd64,linux/arm64 --tag lockstep:0.1.0 .
#
# Each platform is built in a container of that platform.

FROM rust:1.95-bookworm AS build
# The toolchain of this stage: rustup would install the components for development that rust-toolchain.toml names.
ENV RUSTUP_TOOLCHAIN=1.95.0
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    cargo build --locked --profile dist --package lockstep --no-default-features \
    && cargo run --locked --package xtask -- image --root-directory /image

FROM scratch
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="lockstep" \
      org.opencontainers.image.description="Admission webhook and controllers that share one set of rules" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /image/ /
ENV PATH=/usr/local/bin
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/lockstep"]
