"""Resolve the jar sets and rewrite src/rivermouth/local/jars.lock: make lock.

The sets ``spark`` and ``registry`` are the lists below; ``broker`` is its list and all its
dependencies. It needs the network, pyspark and a Java. Read the difference before you commit it.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path

from rivermouth.local.ivy import Coordinate, retrieve
from rivermouth.local.jars import LOCK
from rivermouth.local.java import find_java

# spark-token-provider 4.0.0: later versions change only delegation tokens, which are not used here,
# and not every repository has 4.2.0.
SPARK = """
io.delta:delta-spark_4.2_2.13:4.4.0
io.delta:delta-storage:4.4.0
io.delta:delta-kernel-api:4.4.0
io.delta:delta-kernel-defaults:4.4.0
io.delta:delta-kernel-unitycatalog:4.4.0
io.unitycatalog:unitycatalog-client:0.6.0
io.unitycatalog:unitycatalog-hadoop:0.6.0
org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0
org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0
org.apache.kafka:kafka-clients:3.9.2
org.apache.commons:commons-pool2:2.13.1
"""
# The second jar writes the broker's log messages to its log file.
BROKER = """
org.apache.kafka:kafka_2.13:4.2.0
org.apache.logging.log4j:log4j-slf4j-impl:2.25.3
"""
# Later versions need Java 21.
REGISTRY = "io.apicurio:apicurio-registry-app:3.0.9:all@tar.gz"
# A change stream for tests and the demo: Kafka Connect, and Debezium's connector for PostgreSQL.
DEBEZIUM = """
io.debezium:debezium-connector-postgres:3.6.1.Final
org.apache.kafka:connect-runtime:4.2.1
org.apache.kafka:connect-json:4.2.1
"""
# It writes Avro for Kafka Connect; later versions lack a parent that not each repository has.
CONVERTER = "io.apicurio:apicurio-registry-utils-converter:2.6.13.Final"
# A store of objects for tests and first steps: s3proxy over a folder, with what that asks of
# jclouds and the SDK of AWS; all their dependencies would be ten times as large.
STORE = """
org.gaul:s3proxy:4.1.0
tools.jackson.core:jackson-core:3.2.2
tools.jackson.core:jackson-databind:3.2.2
tools.jackson.dataformat:jackson-dataformat-xml:3.2.2
com.fasterxml.jackson.core:jackson-annotations:2.22
com.google.guava:guava:33.7.1-jre
software.amazon.awssdk:s3:2.54.2
software.amazon.awssdk:sdk-core:2.54.2
software.amazon.awssdk:aws-core:2.54.2
software.amazon.awssdk:utils:2.54.2
software.amazon.awssdk:http-client-spi:2.54.2
software.amazon.awssdk:checksums:2.54.2
software.amazon.awssdk:checksums-spi:2.54.2
com.fasterxml.woodstox:woodstox-core:7.2.1
org.codehaus.woodstox:stax2-api:4.3.0
ch.qos.logback:logback-classic:1.6.3
ch.qos.logback:logback-core:1.6.3
org.slf4j:slf4j-api:2.0.18
args4j:args4j:2.37
jakarta.servlet:jakarta.servlet-api:6.0.0
"""
# Whom the benchmarks compare with.
PEERS = "org.apache.spark:spark-avro_2.13:4.2.0"
SETS = {
    "spark": (SPARK, False),
    "broker": (BROKER, True),
    "registry": (REGISTRY, False),
    "debezium": (DEBEZIUM, True),
    "converter": (CONVERTER, True),
    "store": (STORE, False),
    "peers": (PEERS, False),
}
HEAD = "# Every jar with its sha256, a set under each [name]. Written by: make lock\n"


def say(line: str) -> None:
    print(line, file=sys.stderr)


def resolve(listed: str, transitive: bool) -> list[tuple[Coordinate, str]]:
    """Download a set to a temporary folder; return each coordinate with its sha256."""
    wanted = [Coordinate.parse(line) for line in listed.split()]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        retrieve(wanted, folder, find_java(), transitive=transitive, progress=say)
        found = []
        named = {(each.group, each.name): each for each in wanted if each.classifier}
        for path in (each for each in folder.glob("*/*/*") if each.is_file()):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            group, name = path.parent.parent.name, path.parent.name
            known = named.get((group, name)) or Coordinate(group, name, path.stem)
            found.append((known, digest))
    return found


def main() -> int:
    lines = [HEAD]
    for name, (listed, transitive) in SETS.items():
        found = sorted(resolve(listed, transitive))
        lines += [f"\n[{name}]\n", *(f"{jar} {digest}\n" for jar, digest in found)]
        say(f"{name}: {len(found)} jars")
    LOCK.write_text("".join(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
