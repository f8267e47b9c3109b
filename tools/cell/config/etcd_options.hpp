/// The options that name etcd and a cell on it, for the agent and for `brokerctl cell`.
#pragma once

#include <string>
#include <vector>

#include "ipc/etcd/client.hpp"
#include "tools/cell/decide/names.hpp"

namespace CLI {
class App;
}

namespace leasehold::cell {

/// What the command line says, before it is understood.
struct EtcdTexts {
  std::vector<std::string> members{"http://127.0.0.1:2379"};
  std::string ca;
  std::string user;
  std::string password_file;
  bool any_address = false;
  std::string cell;
};

/// Adds --etcd, --etcd-ca, --etcd-user, --etcd-password-file, --etcd-any-address and --cell.
/// `texts` outlives the parse.
void add_etcd_options(CLI::App& app, EtcdTexts& texts);

/// A cell, and how etcd is reached.
struct CellAddress {
  etcd::ClientOptions etcd;
  CellName cell;
};

/// Reads the files that the options name. Errors: BadRequest, which names the option;
/// PermissionDenied for a password file that other users can read; those of http::TlsClient::load.
Result<CellAddress> understand(const EtcdTexts& texts);

/// Reads the options from a configuration file, which may be that of the agent. Errors: those of
/// `understand`; BadRequest for a file that is wrong, with its line; FileNotFound,
/// PermissionDenied.
Result<CellAddress> read_cell_file(const std::string& path);

}  // namespace leasehold::cell
