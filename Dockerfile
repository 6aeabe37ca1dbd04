# The four programs, one image each: an image holds one program and is started by its name, so a service needs no
# command to choose it and ships no neighbour's code. All four come out of one build stage, which is built once.
#
# Nothing here needs BuildKit: the classic builder, which docker-compose 1.29 meets on older engines, takes it as well.

# Any Rust from the workspace's `rust-version` on will do; Cargo.lock holds the rest. The slim image has the C compiler
# that `ring` needs. Both stages are of one Debian release, so that the programs find the C library they were linked with.
FROM rust:1-slim-bookworm AS build
WORKDIR /src
COPY . .
# One step, which leaves behind the programs and nothing else: what it leaves is kept by the builder as a layer.
RUN cargo build --release --locked -p planner -p code-reviewer -p test-runner -p deployer \
 && mkdir /out \
 && cd target/release \
 && cp planner code-reviewer test-runner deployer /out/ \
 && rm -rf /src/target "${CARGO_HOME:-$HOME/.cargo}/registry"

FROM debian:bookworm-slim AS base
# A TLS client does not start without roots, and debian's slim image has none.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
# By number, so that it can be checked without /etc/passwd. Nothing in these images is this user's to write.
USER 10001:10001
# So tasks are kept in memory, unless a volume and A2A_STORE=sqlite:PATH say otherwise.
ENV A2A_STORE=memory

FROM base AS planner
COPY --from=build /out/planner /usr/local/bin/
ENTRYPOINT ["planner"]

FROM base AS test-runner
COPY --from=build /out/test-runner /usr/local/bin/
EXPOSE 41241
ENTRYPOINT ["test-runner"]

FROM base AS code-reviewer
COPY --from=build /out/code-reviewer /usr/local/bin/
EXPOSE 41242
ENTRYPOINT ["code-reviewer"]

FROM base AS deployer
COPY --from=build /out/deployer /usr/local/bin/
EXPOSE 41243
ENTRYPOINT ["deployer"]
