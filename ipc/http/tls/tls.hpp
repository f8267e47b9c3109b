/// Encrypted connections: from clients, with a certificate, and to servers. Only this file's source
/// uses OpenSSL. TLS 1.2 and 1.3.
///
/// Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "common/result.hpp"
#include "ipc/http/http_message.hpp"

namespace leasehold::http {

inline constexpr std::chrono::seconds kHandshakeTimeout{10};

/// The certificate that clients are shown.
class TlsServer {
 public:
  /// PEM files: the chain, beginning with the server's certificate, and its private key, which
  /// other users may not read. Errors: FileNotFound, PermissionDenied; FileCorrupt for a file that
  /// is not PEM, and for a key of another certificate.
  static Result<TlsServer> load(const std::string& certificate, const std::string& key);
  /// Reads the files again, for connections that begin from now on. An error changes nothing.
  Result<void> reload();
  /// Performs the handshake. Errors: ConnectionLost, TimedOut.
  boost::asio::awaitable<Result<std::unique_ptr<ByteStream>>> accept(Stream stream);

 private:
  struct Context;
  TlsServer(std::string certificate, std::string key, std::shared_ptr<Context> context);
  static Result<std::shared_ptr<Context>> make(const std::string& certificate,
                                               const std::string& key);

  std::string certificate_;
  std::string key_;
  std::shared_ptr<Context> context_;
};

/// Whose certificates servers must have.
class TlsClient {
 public:
  /// `authorities` is a PEM file; empty: those that the system trusts. `option` names the setting
  /// of that file in errors. Errors: FileNotFound, PermissionDenied, FileCorrupt.
  static Result<TlsClient> load(const std::string& authorities, std::string option);
  /// Performs the handshake with the server of this name or address. Errors: PermissionDenied for
  /// a certificate that is not trusted or names another server; ConnectionLost; TimedOut after
  /// `timeout`.
  boost::asio::awaitable<Result<std::unique_ptr<ByteStream>>> connect(
      Stream stream, std::string name, std::chrono::milliseconds timeout = kHandshakeTimeout);

 private:
  struct Context;
  TlsClient(std::shared_ptr<Context> context, std::string option)
      : context_(std::move(context)), option_(std::move(option)) {}

  std::shared_ptr<Context> context_;
  std::string option_;
};

}  // namespace leasehold::http
