#include "tools/cell/config/etcd_options.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "common/cli/command_line.hpp"
#include "common/cli/config_file.hpp"
#include "common/machine/text_file.hpp"

namespace leasehold::cell {
namespace {

constexpr std::size_t kMaxPasswordBytes = 1024;

Error of_password_file(Error error, const std::string& path) {
  error.detail = "--etcd-password-file: " + error.detail;
  const bool is_readable = ::access(path.c_str(), R_OK) == 0;
  if (error.code == Errc::PermissionDenied && !is_readable)
    error.detail += fmt::format("; it must belong to the user of this program, {}", ::geteuid());
  return error;
}

/// The first line of the file.
Result<std::string> read_password(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0 && (status.st_mode & 077) != 0) {
    return fail(Errc::PermissionDenied,
                fmt::format("--etcd-password-file: other users can read {}; run `chmod 600 {}` and "
                            "change the password",
                            path, path));
  }
  auto text = read_trusted_file(path, kMaxPasswordBytes);
  if (!text) return std::unexpected(of_password_file(text.error(), path));
  text->resize(std::min(text->find('\n'), text->size()));
  if (!text->empty()) return text;
  return fail(Errc::BadRequest,
              fmt::format("--etcd-password-file: the first line of {} is empty; write the password "
                          "into it",
                          path));
}

Result<std::vector<etcd::MemberAddress>> read_members(const EtcdTexts& texts) {
  const auto reach = texts.any_address ? etcd::Reach::AnyMachine : etcd::Reach::ThisMachine;
  std::vector<etcd::MemberAddress> members;
  for (const std::string& text : texts.members) {
    auto member = etcd::MemberAddress::parse(text, reach);
    if (!member) return fail(Errc::BadRequest, "--etcd: " + member.error().detail);
    if (std::ranges::find(members, *member) != members.end())
      return fail(Errc::BadRequest, fmt::format("--etcd: {} is named twice; remove one", text));
    members.push_back(*std::move(member));
  }
  return members;
}

Result<std::optional<etcd::Login>> read_login(const EtcdTexts& texts) {
  if (texts.user.empty() != texts.password_file.empty()) {
    return fail(Errc::BadRequest, texts.user.empty() ? "--etcd-password-file needs --etcd-user"
                                                     : "--etcd-user needs --etcd-password-file");
  }
  if (texts.user.empty()) return std::nullopt;
  std::string password = TRY(read_password(texts.password_file));
  return etcd::Login{.user = texts.user, .password = std::move(password)};
}

/// Options of the agent that a file for both programs has.
struct AgentTexts {
  std::string host, broker, listen, state_dir, log_level;
  std::vector<std::string> doors;
};

void accept_agent_options(CLI::App& app, AgentTexts& ignored) {
  app.add_option("--host", ignored.host);
  app.add_option("--door", ignored.doors);
  app.add_option("--broker", ignored.broker);
  app.add_option("--listen", ignored.listen);
  app.add_option("--state-dir", ignored.state_dir);
  app.add_option("--log-level", ignored.log_level);
}

}  // namespace

void add_etcd_options(CLI::App& app, EtcdTexts& texts) {
  app.add_option("--etcd", texts.members,
                 "Member of etcd: https://HOST:PORT, http://HOST:PORT or unix:/PATH; may be "
                 "repeated")
      ->capture_default_str();
  app.add_option("--etcd-ca", texts.ca,
                 "PEM file of the authorities that certify members of etcd; default: those that "
                 "the system trusts");
  app.add_option("--etcd-user", texts.user, "User of etcd; needs --etcd-password-file");
  app.add_option("--etcd-password-file", texts.password_file,
                 "File with the password of --etcd-user, which no other user can read");
  app.add_flag("--etcd-any-address", texts.any_address,
               "Allow members of etcd on other machines, without encryption");
  app.add_option("--cell", texts.cell, "Name of the cell")->required()->check(check_name);
}

Result<CellAddress> understand(const EtcdTexts& texts) {
  CellAddress address;
  address.etcd.members = TRY(read_members(texts));
  address.etcd.login = TRY(read_login(texts));
  const bool is_encrypted =
      std::ranges::any_of(address.etcd.members, &etcd::MemberAddress::is_encrypted);
  if (!is_encrypted && !texts.ca.empty())
    return fail(Errc::BadRequest, "--etcd-ca needs a member with https://; correct --etcd");
  if (is_encrypted) {
    auto tls = http::TlsClient::load(texts.ca, "--etcd-ca");
    if (!tls) return fail(tls.error().code, "--etcd-ca: " + tls.error().detail);
    address.etcd.tls = *std::move(tls);
  }
  address.cell = TRY(CellName::parse(texts.cell));
  return address;
}

Result<CellAddress> read_cell_file(const std::string& path) {
  CLI::App app{"", "brokerctl cell"};
  EtcdTexts texts;
  AgentTexts ignored;
  add_config_options(app);
  add_etcd_options(app, texts);
  accept_agent_options(app, ignored);
  const std::vector<std::string> arguments{"--config", path};
  const auto usage = parse_cli_arguments(app, arguments);
  if (!usage) return understand(texts);
  if (!usage->config_errors.empty()) return std::unexpected(usage->config_errors.front());
  return fail(Errc::BadRequest, fmt::format("{}: {}", path, usage->text));
}

}  // namespace leasehold::cell
