# docs/deploy.md: docker build -t taiwa .
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml hatch_build.py constraints.txt LICENSE ./
COPY src src
RUN python -m venv /opt/taiwa && /opt/taiwa/bin/pip install --no-cache-dir --constraint constraints.txt '.[serve,postgres]'

FROM python:3.13-slim
COPY --from=build /opt/taiwa /opt/taiwa
RUN useradd --create-home taiwa && install --directory --owner taiwa --group taiwa /data
USER taiwa
ENV PATH=/opt/taiwa/bin:$PATH XDG_DATA_HOME=/data XDG_CONFIG_HOME=/data
VOLUME /data
EXPOSE 7474
STOPSIGNAL SIGINT
HEALTHCHECK CMD python -c "import urllib.request as r; r.urlopen('http://127.0.0.1:7474/health')"
ENTRYPOINT ["taiwa", "serve", "--host", "0.0.0.0", "--json-log"]
