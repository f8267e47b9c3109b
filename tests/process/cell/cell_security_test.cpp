// etcd with TLS and users: what hosts may do, and the errors that they get otherwise.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "ipc/control/transport/base64.hpp"
#include "ipc/etcd/connection.hpp"
#include "tests/process/cell/etcd_process.hpp"

using namespace leasehold;
using namespace leasehold::etcd;
using Catch::Contains;

namespace leasehold::testing {
namespace {

/// Posts to a page of etcd that the client does not use, and returns the reply.
boost::asio::awaitable<Result<std::string>> post(const MemberAddress& member, http::TlsClient tls,
                                                 GatewayRequest request) {
  http::NameLookup names;
  const auto endpoints = co_await names.find(member.url, EtcdProcess::kLong);
  if (!endpoints) co_return std::unexpected(endpoints.error());
  const auto opened = co_await Connection::open(member, *endpoints, &tls, EtcdProcess::kLong);
  if (!opened) co_return std::unexpected(opened.error());
  const auto sent = co_await (*opened)->send(std::move(request));
  if (!sent) co_return std::unexpected(sent.error());
  const auto status = co_await (*opened)->read_head();
  if (!status) co_return std::unexpected(status.error());
  co_return co_await (*opened)->read_body(1 << 20);
}

std::string permission(const char* role, const char* type, const std::string& first,
                       const std::string& end) {
  return R"({"name":")" + std::string(role) + R"(","perm":{"permType":")" + type + R"(","key":")" +
         control::to_base64(first) + R"(","range_end":")" + control::to_base64(end) + R"("}})";
}

/// Users: root, and h1, which may read the cell c and write what the agent of host h1 writes.
void enable_users(EtcdProcess& etcd) {
  const ClientOptions options = etcd.options();
  const auto call = [&](std::string_view target, std::string body) {
    GatewayRequest request{.target = target, .body = std::move(body), .token = {}};
    const auto reply = etcd.wait(post(options.members.front(), *options.tls, std::move(request)));
    REQUIRE(reply);
    INFO(target << ": " << *reply);
    REQUIRE(!reply->contains("error"));
  };
  for (const char* name : {"root", "h1"}) {
    call("/v3/auth/role/add", R"({"name":")" + std::string(name) + R"("})");
    call("/v3/auth/user/add", R"({"name":")" + std::string(name) + R"(","password":"secret"})");
    call("/v3/auth/user/grant",
         R"({"user":")" + std::string(name) + R"(","role":")" + name + R"("})");
  }
  call("/v3/auth/role/grant", permission("h1", "READ", "/leasehold/c/", "/leasehold/c0"));
  call("/v3/auth/role/grant", permission("h1", "READWRITE", "/leasehold/c/hosts/h1", ""));
  for (const char* prefix : {"/leasehold/c/ledger", "/leasehold/c/mail"})
    call("/v3/auth/role/grant",
         permission("h1", "READWRITE", std::string(prefix) + "/", std::string(prefix) + "0"));
  call("/v3/auth/enable", "{}");
}

/// Executes one put as a user, with a client of its own.
Result<TransactionReply> put_as(EtcdProcess& etcd, ClientOptions options, const std::string& key) {
  Client client(etcd.io(), std::move(options));
  Transaction put{.conditions = {}, .success = {Put{key, "1"}}, .failure = {}};
  return etcd.wait(client.commit(std::move(put)));
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
  if (!has_etcd()) return;
  EtcdProcess etcd(Transport::Tls);
  enable_users(etcd);
  const auto refused = [&](ClientOptions options, const std::string& key) {
    const auto reply = put_as(etcd, std::move(options), key);
    REQUIRE(!reply);
    CHECK(reply.error().code == Errc::PermissionDenied);
    return reply.error().detail;
  };
  CHECK_THAT(refused(etcd.options(), "k"), Contains("configure a user"));
  CHECK_THAT(refused(etcd.options(Login{"h1", "wrong"}), "k"), Contains("password file"));
  const Login h1{"h1", "secret"};
  CHECK_THAT(refused(etcd.options(h1), "/leasehold/c/keys/k"), Contains("its role"));
  CHECK_THAT(refused(etcd.options(h1), "/leasehold/c/hosts/h2"), Contains("its role"));
  CHECK(put_as(etcd, etcd.options(h1), "/leasehold/c/mail/h1/ann"));

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
  if (!has_etcd()) return;
  EtcdProcess etcd(Transport::Tls);
  enable_users(etcd);
  const auto directory = TemporaryDirectory::create("cell").value();
  const auto start = [&](const char* name, const std::string& password) {
    return AgentProcess(etcd,
                        {.state = directory.file(name),
                         .arguments = {"--etcd-user", "h1", "--etcd-password-file", password}});
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
