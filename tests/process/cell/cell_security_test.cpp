// etcd with TLS and users: what hosts may do, and the errors that they get otherwise.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "tests/process/cell/etcd_process.hpp"

using namespace leasehold;
using namespace leasehold::etcd;
using Catch::Contains;

namespace leasehold::testing {
namespace {

const std::string kHost = "leasehold-c-host-h1";
const std::string kGateway = "leasehold-c-gateway";
const std::string kMonitor = "leasehold-c-monitor";
const std::string kOperator = "leasehold-c-operator";

/// etcdctl is in a package of its own.
bool has_etcdctl() {
  return std::system("command -v etcdctl >/dev/null") == 0;
}

int run_shell(const std::string& script, const std::string& log) {
  Child child = Child::start({.argv = {"/bin/bash", "-ec", script}, .log_path = log}).value();
  return exit_status_of(child);
}

/// Makes roles and users as an operator does: with what `brokerctl cell roles` prints, and what it
/// says to do before and after.
void enable_users(EtcdProcess& etcd) {
  const std::string roles = program_path("brokerctl") + " cell roles --cell c";
  std::string script = "cd " + etcd.file("") +
                       "\nexport ETCDCTL_API=3 ETCDCTL_ENDPOINTS=" + etcd.address() +
                       " ETCDCTL_CACERT=" + etcd.ca() + "\n";
  for (const std::string& user : {kHost, kGateway, kMonitor, kOperator, std::string("root")})
    script += "echo secret >" + user + ".password\n";
  script += roles + " h1 >roles.sh\n" + roles + " >>roles.sh\nbash -e roles.sh\n";
  script +=
      "etcdctl user add root --interactive=false <root.password\n"
      "etcdctl user grant-role root root\n"
      "etcdctl auth enable\n";
  const std::string log = etcd.file("etcdctl.log");
  const int code = run_shell(script, log);
  INFO(file_bytes(log));
  REQUIRE(code == 0);
}

/// Executes one operation as a user, with a client of its own.
Result<TransactionReply> commit_as(EtcdProcess& etcd, ClientOptions options, Operation operation) {
  Client client(etcd.io(), std::move(options));
  Transaction transaction{.conditions = {}, .success = {std::move(operation)}, .failure = {}};
  return etcd.wait(client.commit(std::move(transaction)));
}

Result<TransactionReply> put_as(EtcdProcess& etcd, ClientOptions options, const std::string& key) {
  return commit_as(etcd, std::move(options), Put{key, "1"});
}

std::string write_password(const EtcdProcess& etcd, const std::string& name,
                           const std::string& password, mode_t mode) {
  const std::string path = etcd.file(name);
  std::ofstream(path) << password << '\n';
  REQUIRE(::chmod(path.c_str(), mode) == 0);
  return path;
}

}  // namespace

TEST_CASE("cell: an etcd with TLS and users says which certificate, password or role is wrong") {
  if (!has_etcd() || !has_etcdctl()) return;
  EtcdProcess etcd(Transport::Tls);
  enable_users(etcd);
  const auto refused = [&](ClientOptions options, const std::string& key) {
    const auto reply = put_as(etcd, std::move(options), key);
    REQUIRE(!reply);
    CHECK(reply.error().code == Errc::PermissionDenied);
    return reply.error().detail;
  };
  CHECK_THAT(refused(etcd.options(), "k"), Contains("configure a user"));
  CHECK_THAT(refused(etcd.options(Login{kHost, "wrong"}), "k"), Contains("password file"));
  const Login h1{kHost, "secret"};
  CHECK_THAT(refused(etcd.options(h1), "/leasehold/c/keys/k"), Contains("its role"));

  const EtcdProcess other(Transport::Tls);
  ClientOptions wrong_ca = etcd.options(h1);
  wrong_ca.tls = http::TlsClient::load(other.ca(), "--etcd-ca").value();
  CHECK_THAT(refused(wrong_ca, "k"),
             Contains("certificate verify failed") && Contains("--etcd-ca"));
  ClientOptions wrong_name = etcd.options(h1);
  MemberAddress& member = wrong_name.members.front();
  member.url.host = "localhost";  // the certificate is for 127.0.0.1
  CHECK_THAT(refused(wrong_name, "k"), Contains("the certificate must be for this name"));
}

TEST_CASE("cell: etcd refuses each write for which a host, a gateway or a monitor has no role") {
  if (!has_etcd() || !has_etcdctl()) return;
  EtcdProcess etcd(Transport::Tls);
  enable_users(etcd);
  const auto code = [&](const std::string& user, const Operation& operation) {
    const auto done = commit_as(etcd, etcd.options(Login{user, "secret"}), operation);
    return done ? std::optional<Errc>() : done.error().code;
  };
  const std::string cell = "/leasehold/c/";
  const auto erase = [&](const std::string& key) { return Delete{KeyRange::one(cell + key)}; };
  for (const char* key : {"config", "hosts/h2", "hosts/h11", "wanted/h1", "wanted/h2",
                          "tenants/ann", "keys/0011223344556677", "revoked/0011223344556677"}) {
    CAPTURE(key);
    CHECK(code(kHost, Put{cell + key, "1"}) == Errc::PermissionDenied);
    CHECK(code(kHost, erase(key)) == Errc::PermissionDenied);
  }
  for (const char* key : {"config", "ledger/ann", "wanted/h1", "tenants/ann", "mail/h1/ann",
                          "keys/0011223344556677"}) {
    CAPTURE(key);
    CHECK(code(kGateway, Put{cell + key, "1"}) == Errc::PermissionDenied);
  }
  for (const char* key : {"config", "hosts/h1", "ledger/ann", "keys/0011223344556677"}) {
    CAPTURE(key);
    CHECK(code(kMonitor, Put{cell + key, "1"}) == Errc::PermissionDenied);
    CHECK(code(kMonitor, erase(key)) == Errc::PermissionDenied);
  }
  for (const std::string& user : {kGateway, kMonitor})
    CHECK(code(user, Get{KeyRange::prefix(cell + "keys/")}) == Errc::PermissionDenied);
  CHECK(!code(kMonitor, Get{KeyRange::prefix(cell + "ledger/")}));
  CHECK(code(kHost, Get{KeyRange::one("/leasehold/d/config")}) == Errc::PermissionDenied);
  for (const char* key : {"hosts/h1", "ledger/ann", "mail/h1/ann"})
    CHECK(!code(kHost, Put{cell + key, "1"}));
  CHECK(!code(kGateway, erase("hosts/h1")));
  CHECK(!code(kOperator, Put{cell + "tenants/ann", "1"}));
  CHECK(code(kOperator, Put{"/leasehold/d/config", "1"}) == Errc::PermissionDenied);
}

TEST_CASE("cell: a member of etcd whose certificate is refused is left for the next one") {
  if (!has_etcd()) return;
  EtcdProcess etcd(Transport::Tls);
  const EtcdProcess other(Transport::Tls);
  ClientOptions both = etcd.options();
  both.members.insert(both.members.begin(), other.options().members.front());
  Client client(etcd.io(), std::move(both));
  const auto put = [&] {
    Transaction transaction{.conditions = {}, .success = {Put{"k", "1"}}, .failure = {}};
    return etcd.wait(client.commit(std::move(transaction)));
  };
  const auto refused = put();
  REQUIRE(!refused);
  CHECK(refused.error().code == Errc::PermissionDenied);
  CHECK(put());
}

TEST_CASE("cell: an agent joins over TLS as a user, and refuses a password that others can read") {
  if (!has_etcd() || !has_etcdctl()) return;
  EtcdProcess etcd(Transport::Tls);
  enable_users(etcd);
  const auto directory = TemporaryDirectory::create("cell").value();
  const auto start = [&](const char* name, const std::string& password) {
    return AgentProcess(etcd,
                        {.state = directory.file(name),
                         .arguments = {"--etcd-user", kHost, "--etcd-password-file", password}});
  };
  AgentProcess agent = start("h1", write_password(etcd, "right", "secret", 0600));
  CHECK(agent.logs("host joined"));
  AgentProcess wrong = start("wrong", write_password(etcd, "wrong", "secrets", 0600));
  CHECK(wrong.logs("no beat arrives code=PermissionDenied"));
  AgentProcess readable = start("readable", write_password(etcd, "readable", "secret", 0644));
  CHECK(exit_status_of(readable.child()) == 2);
  CHECK_THAT(readable.log(), Contains("other users can read") && Contains("chmod 600"));
}

}  // namespace leasehold::testing
