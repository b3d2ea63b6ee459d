# docker build -t attnrate .                                    the tool, CPU or GPU: PyTorch's wheels bring CUDA with them
# docker build -t attnrate --build-arg TORCH_INDEX=ADDRESS .    PyTorch from another index, such as its small CPU wheels
# docker build -t attnrate-pipeline --target pipeline .         the whole pipeline: docker run attnrate-pipeline make repro
# docker run --gpus all -v "$PWD:/data" attnrate spectrum MODEL --images /data/images --out /data/spectra
# No image was built here, where there is neither a Docker daemon nor a GPU.
FROM python:3.12-slim AS base
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
ARG TORCH_INDEX=
RUN if [ -n "$TORCH_INDEX" ]; then pip install --index-url "$TORCH_INDEX" torch torchvision; fi

FROM base AS pipeline
RUN apt-get update && apt-get install -y --no-install-recommends git make nodejs npm && rm -rf /var/lib/apt/lists/*
WORKDIR /attnrate
COPY . .
RUN make env

FROM base AS tool
COPY pyproject.toml README.md LICENSE /source/
COPY src /source/src
RUN pip install "/source[timm,transformers]" torchvision
WORKDIR /data
ENTRYPOINT ["attnrate"]
