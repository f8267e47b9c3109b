#include "tools/cell/options.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "common/cli/command_line.hpp"
#include "common/cli/config_file.hpp"
#include "common/cli/version.hpp"
#include "common/machine/text_file.hpp"

namespace leasehold::cell {
namespace {

constexpr std::size_t kMaxPasswordBytes = 1024;
constexpr std::size_t kMaxDoorBytes = 256;

/// The options as texts, before they are parsed.
struct Texts {
  std::vector<std::string> members{"http://127.0.0.1:2379"};
  std::string user;
  std::string password_file;
  std::string cell;
  std::string host;
  bool any_address = false;
};

void add_options(CLI::App& app, Texts& texts, Options& options) {
  app.add_option("--etcd", texts.members,
                 "Member of etcd: http://HOST:PORT or unix:/PATH; may be repeated")
      ->capture_default_str();
  app.add_flag("--etcd-any-address", texts.any_address,
               "Allow members of etcd on other machines, without encryption");
  app.add_option("--etcd-user", texts.user, "User of etcd; needs --etcd-password-file");
  app.add_option("--etcd-password-file", texts.password_file,
                 "File with the password of --etcd-user, which no other user can read");
  app.add_option("--cell", texts.cell, "Name of the cell")->required()->check(check_name);
  app.add_option("--host", texts.host, "Name of this host, which no other host of the cell has")
      ->required()
      ->check(check_name);
  app.add_option("--door", options.door,
                 "Address at which gateways reach the workers of this host");
  app.add_option("--state-dir", options.state_directory,
                 "Directory for what a restarted agent needs, below /run")
      ->required()
      ->check(check_directory_path);
  app.add_option("--log-level", options.log_level, "Least severe level to log")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}))
      ->capture_default_str();
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
  std::string text = TRY(read_trusted_file(path, kMaxPasswordBytes));
  text.resize(std::min(text.find('\n'), text.size()));
  if (!text.empty()) return text;
  return fail(Errc::BadRequest,
              fmt::format("--etcd-password-file: the first line of {} is empty; write the password "
                          "into it",
                          path));
}

Result<void> understand(const Texts& texts, Options& options) {
  const auto reach = texts.any_address ? etcd::Reach::AnyMachine : etcd::Reach::ThisMachine;
  for (const std::string& text : texts.members) {
    auto member = etcd::MemberAddress::parse(text, reach);
    if (!member) return fail(Errc::BadRequest, "--etcd: " + member.error().detail);
    if (std::ranges::find(options.etcd.members, *member) != options.etcd.members.end())
      return fail(Errc::BadRequest, fmt::format("--etcd: {} is named twice; remove one", text));
    options.etcd.members.push_back(*std::move(member));
  }
  if (texts.user.empty() != texts.password_file.empty()) {
    return fail(Errc::BadRequest, texts.user.empty() ? "--etcd-password-file needs --etcd-user"
                                                     : "--etcd-user needs --etcd-password-file");
  }
  if (!texts.user.empty()) {
    std::string password = TRY(read_password(texts.password_file));
    options.etcd.login = etcd::Login{.user = texts.user, .password = std::move(password)};
  }
  if (options.door.size() > kMaxDoorBytes)
    return fail(Errc::BadRequest,
                fmt::format("--door has more than {} bytes; shorten it", kMaxDoorBytes));
  options.cell = {texts.cell};
  options.host = {texts.host};
  return {};
}

}  // namespace

std::variant<Options, int> parse_options(int argc, char** argv) {
  Options options;
  Texts texts;
  CLI::App app{"Join this host to a cell of hosts on etcd", "leasehold-cell"};
  app.set_version_flag("--version", "leasehold-cell " + std::string(version()));
  add_config_options(app);
  add_options(app, texts, options);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  if (const auto understood = understand(texts, options); !understood)
    return print_error(app.get_name(), Usage{.text = understood.error().detail});
  if (const auto ended = finish_config(app)) return *ended;
  return options;
}

}  // namespace leasehold::cell
