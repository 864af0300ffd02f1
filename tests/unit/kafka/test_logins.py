"""Each login, said once: what the Java client is told, and what librdkafka is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from rivermouth.config.logins import LOGINS, PROVIDER, read_jaas, write_jaas
from rivermouth.errors import KafkaRefused
from rivermouth.kafka.options import java_options, native_options, spark_options

pytestmark = pytest.mark.unit

Options = dict[str, str]

LOGIN = "org.apache.kafka.common.security"
OAUTH = f"{LOGIN}.oauthbearer.OAuthBearerLoginModule required"
SCRAM = f"{LOGIN}.scram.ScramLoginModule required"
HANDLER = f"{LOGIN}.oauthbearer.OAuthBearerLoginCallbackHandler"
CREDENTIALS = {
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://id/token",
    "sasl.oauthbearer.client.credentials.client.id": "me",
    "sasl.oauthbearer.client.credentials.client.secret": 'a "b\\c',
    "sasl.oauthbearer.scope": "kafka",
}
JAAS = f'{OAUTH} clientId="me" clientSecret="a \\"b\\\\c" scope="kafka";'
JAVA_OAUTH = {
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://id/token",
    "sasl.jaas.config": JAAS,
    "sasl.login.callback.handler.class": HANDLER,
}
NATIVE_OAUTH = {
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.token.endpoint.url": "https://id/token",
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": 'a "b\\c',
    "sasl.oauthbearer.scope": "kafka",
}
OF_LIBRDKAFKA = {
    "sasl.mechanisms": "OAUTHBEARER",
    **{name: text for name, text in NATIVE_OAUTH.items() if name != "sasl.mechanism"},
}
EXTENDED = {"sasl.oauthbearer.extensions": "logicalCluster=lkc-1,identityPoolId=pool"}
OWN = {
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.login.callback.handler.class": "com.example.Handler",
    PROVIDER: "my_package.logins:token",
}
MSK = "software.amazon.msk.auth.iam"

CASES = [
    pytest.param(
        {
            "sasl.mechanisms": "SCRAM-SHA-512",
            "sasl.username": "me",
            "sasl.password": "p",
        },
        {
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{SCRAM} username="me" password="p";',
        },
        {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "me", "sasl.password": "p"},
        id="librdkafka's name of the mechanism",
    ),
    pytest.param(CREDENTIALS, JAVA_OAUTH, NATIVE_OAUTH, id="client credentials"),
    pytest.param(OF_LIBRDKAFKA, JAVA_OAUTH, NATIVE_OAUTH, id="in the words of librdkafka"),
    pytest.param(JAVA_OAUTH, JAVA_OAUTH, NATIVE_OAUTH, id="in the words of Java 3.9"),
    pytest.param(
        {**CREDENTIALS, **EXTENDED, "https.ca.location": "/ca.pem"},
        {
            **JAVA_OAUTH,
            "sasl.jaas.config": JAAS[:-1]
            + ' extension_logicalCluster="lkc-1" extension_identityPoolId="pool"'
            + ' ssl.truststore.type="PEM" ssl.truststore.location="/ca.pem";',
        },
        {**NATIVE_OAUTH, **EXTENDED, "https.ca.location": "/ca.pem"},
        id="extensions, and an authority for the endpoint",
    ),
    pytest.param(
        OWN,
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": "com.example.Handler",
            "sasl.jaas.config": f"{OAUTH};",
        },
        {"sasl.mechanism": "OAUTHBEARER"},
        id="a Java class, and a Python function",
    ),
    pytest.param(
        {**CREDENTIALS, PROVIDER: "my_package.logins:token"},
        JAVA_OAUTH,
        {"sasl.mechanism": "OAUTHBEARER"},
        id="client credentials for Java, and a Python function",
    ),
    pytest.param(
        {"sasl.mechanism": "AWS_MSK_IAM", "rivermouth.login.role": "arn:x"},
        {
            "sasl.mechanism": "AWS_MSK_IAM",
            "sasl.jaas.config": f'{MSK}.IAMLoginModule required awsRoleArn="arn:x";',
            "sasl.client.callback.handler.class": f"{MSK}.IAMClientCallbackHandler",
        },
        {"sasl.mechanism": "OAUTHBEARER"},
        id="IAM of Amazon",
    ),
    pytest.param(
        {"sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "kafka"},
        {"sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "kafka"},
        {"sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "kafka"},
        id="Kerberos, word for word",
    ),
    pytest.param(
        {"ssl.certificate.location": "/me.pem", "ssl.key.location": "/me.pem"},
        {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/me.pem"},
        {"ssl.certificate.location": "/me.pem", "ssl.key.location": "/me.pem"},
        id="certificate and key in one file",
    ),
    pytest.param(
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": "KEY",
            "ssl.keystore.certificate.chain": "CHAIN",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": "CA",
        },
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": "KEY",
            "ssl.keystore.certificate.chain": "CHAIN",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": "CA",
        },
        {"ssl.key.pem": "KEY", "ssl.certificate.pem": "CHAIN", "ssl.ca.pem": "CA"},
        id="text of PEM files",
    ),
    pytest.param(
        {
            "ssl.keystore.location": "/me.jks",
            "ssl.keystore.password": "p",
            "ssl.certificate.location": "/cert.pem",
            "ssl.key.location": "/key.pem",
            "ssl.truststore.location": "/trust.jks",
            "ssl.ca.location": "/ca.pem",
        },
        {
            "ssl.keystore.location": "/me.jks",
            "ssl.keystore.password": "p",
            "ssl.truststore.location": "/trust.jks",
        },
        {
            "ssl.certificate.location": "/cert.pem",
            "ssl.key.location": "/key.pem",
            "ssl.ca.location": "/ca.pem",
        },
        id="a store for Java and files for librdkafka",
    ),
    pytest.param({"ssl.ca.location": "probe"}, {}, {"ssl.ca.location": "probe"}, id="the system"),
    pytest.param(
        {"ssl.endpoint.identification.algorithm": ""},
        {"ssl.endpoint.identification.algorithm": ""},
        {"ssl.endpoint.identification.algorithm": "none"},
        id="no name of a host is compared, in the words of Java",
    ),
    pytest.param(
        {"ssl.endpoint.identification.algorithm": "none"},
        {"ssl.endpoint.identification.algorithm": ""},
        {"ssl.endpoint.identification.algorithm": "none"},
        id="no name of a host is compared, in the words of librdkafka",
    ),
]


@pytest.mark.parametrize(("options", "java", "native"), CASES)
def test_a_login_that_is_said_once_reaches_both_clients(
    options: Options, java: Options, native: Options
) -> None:
    assert java_options(options) == java
    assert native_options(options) == native


@pytest.mark.parametrize("options", [case.values[0] for case in CASES])
def test_what_java_is_told_is_understood_in_the_same_way_again(options: Options) -> None:
    told = java_options(options)
    assert java_options(told) == told


def test_on_databricks_the_classes_of_amazon_have_their_own_prefix() -> None:
    told = spark_options(
        {"bootstrap.servers": "k:1", "sasl.mechanism": "AWS_MSK_IAM"}, databricks=True
    )
    assert told == {
        "kafka.bootstrap.servers": "k:1",
        "kafka.sasl.mechanism": "AWS_MSK_IAM",
        "kafka.sasl.jaas.config": f"shadedmskiam.{MSK}.IAMLoginModule required;",
        "kafka.sasl.client.callback.handler.class": f"shadedmskiam.{MSK}.IAMClientCallbackHandler",
    }


def test_no_option_of_ours_reaches_a_client() -> None:
    for told in (java_options(OWN), native_options(OWN)):
        assert [name for name in told if name.startswith("rivermouth.")] == []


def test_text_with_any_characters_comes_out_of_a_jaas_line_as_it_went_in() -> None:
    fields = {"a.b": 'x="y"; z', "c": "one\ntwo\\n", "d": "it's", "e": ""}
    assert read_jaas(write_jaas("x.Module", fields)) == fields
    assert read_jaas("""x.Module required a=b c='d "e"' ;""") == {"a": "b", "c": 'd "e"'}


def block(kind: str) -> str:
    return f"-----BEGIN {kind}-----\nMIIB\n-----END {kind}-----\n"


def test_certificate_and_key_in_two_files_reach_java_as_text(tmp_path: Path) -> None:
    certificate, key = tmp_path / "me.crt", tmp_path / "me.key"
    certificate.write_text("Bag Attributes\n" + block("CERTIFICATE") * 2)
    key.write_text(block("EC PARAMETERS") + block("PRIVATE KEY"))
    options = {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)}
    assert java_options(options) == {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": block("CERTIFICATE") * 2,
        "ssl.keystore.key": block("PRIVATE KEY"),
    }
    assert native_options(options) == options


@pytest.mark.parametrize("kind", ["RSA PRIVATE KEY", "EC PRIVATE KEY"])
def test_a_key_that_java_cannot_read_is_said_with_the_command_that_converts_it(
    kind: str, tmp_path: Path
) -> None:
    (tmp_path / "me.crt").write_text(block("CERTIFICATE"))
    (tmp_path / "me.key").write_text(block(kind))
    files = {"certificate": "me.crt", "key": "me.key"}
    with pytest.raises(KafkaRefused, match="does not hold what the Java client needs") as caught:
        java_options({f"ssl.{k}.location": str(tmp_path / v) for k, v in files.items()})
    assert (caught.value.expected, caught.value.found) == ("a private key in the form PKCS#8", kind)
    assert "openssl pkcs8 -topk8" in caught.value.remedy
    assert "MIIB" not in str(caught.value)


def test_a_file_that_is_not_there_is_said_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "me.key").write_text(block("PRIVATE KEY"))
    missing = tmp_path / "me.crt"
    options = {
        "ssl.certificate.location": str(missing),
        "ssl.key.location": str(tmp_path / "me.key"),
    }
    with pytest.raises(KafkaRefused, match="cannot be read") as caught:
        java_options(options)
    assert caught.value.where == str(missing)


@pytest.mark.parametrize("mechanism", LOGINS)
def test_a_field_of_a_jaas_line_and_its_option_say_the_same(mechanism: str) -> None:
    login = LOGINS[mechanism]
    options = {"sasl.mechanism": mechanism, **dict.fromkeys(login.fields.values(), "x")}
    line = write_jaas(login.module, dict.fromkeys(login.fields, "x"))
    if "OAUTH" in mechanism:
        options["sasl.oauthbearer.token.endpoint.url"] = "https://id/token"
    said = {name: text for name, text in options.items() if name not in login.fields.values()}
    assert native_options({**said, "sasl.jaas.config": line}) == native_options(options)
