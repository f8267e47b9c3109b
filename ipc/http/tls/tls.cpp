#include "ipc/http/tls/tls.hpp"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <utility>

namespace leasehold::http {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using asio::awaitable;

class EncryptedStream final : public ByteStream {
 public:
  /// `context` lives as long as the connection: a reload replaces it for others.
  EncryptedStream(Stream stream, ssl::context& context, std::shared_ptr<void> kept)
      : kept_(std::move(kept)), stream_(std::move(stream), context) {}

  ssl::stream<Stream>& tls() { return stream_; }

  awaitable<Transfer> read_some(asio::mutable_buffer buffer) override {
    const auto [error, bytes] = co_await stream_.async_read_some(buffer, kAwait);
    // A peer that closes without a close_notify has closed all the same, because HTTP marks the end
    // of a message itself.
    co_return Transfer{
        error == ssl::error::stream_truncated ? boost::system::error_code(asio::error::eof) : error,
        bytes};
  }
  awaitable<Transfer> write(asio::const_buffer bytes) override {
    const auto [error, size] = co_await asio::async_write(stream_, bytes, kAwait);
    co_return Transfer{error, size};
  }
  void expires_after(std::chrono::steady_clock::duration time) override {
    stream_.next_layer().expires_after(time);
  }
  void expires_never() override { stream_.next_layer().expires_never(); }
  void close() override { stream_.next_layer().close(); }

 private:
  std::shared_ptr<void> kept_;
  ssl::stream<Stream> stream_;
};

/// Refuses a file that cannot be read, or, if it is private, that other users can read.
Result<void> check_file(const std::string& path, bool is_private) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 || ::access(path.c_str(), R_OK) != 0)
    return fail_file(path, errno);
  if (!S_ISREG(status.st_mode))
    return fail(Errc::FileCorrupt, fmt::format("{} is not a regular file; name one", path));
  if (is_private && (status.st_mode & S_IRWXO) != 0) {
    return fail(Errc::PermissionDenied,
                fmt::format("other users can read the private key {}; chmod o-rwx it", path));
  }
  return {};
}

std::unexpected<Error> not_pem(const std::string& path, std::string_view what,
                               const boost::system::error_code& error) {
  return fail(Errc::FileCorrupt,
              fmt::format("{} has no {} in PEM form ({}); replace it, or name another file", path,
                          what, error.message()));
}

ssl::context new_context(ssl::context::method method) {
  ssl::context context(method);
  context.set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 |
                      ssl::context::no_tlsv1_1 | ssl::context::no_compression);
  return context;
}

/// `option`: the setting of the trusted authorities.
std::unexpected<Error> handshake_failed(const boost::system::error_code& error,
                                        std::string_view option) {
  if (error == boost::beast::error::timeout)
    return fail(Errc::TimedOut, "the TLS handshake takes too long");
  const bool is_untrusted = error.message().contains("certificate verify failed");
  if (is_untrusted) {
    return fail(Errc::PermissionDenied,
                fmt::format("the TLS handshake failed: {}; the certificate must be for this name, "
                            "and its authority one of {} or of the system",
                            error.message(), option));
  }
  return fail(Errc::ConnectionLost, "the TLS handshake failed: " + error.message());
}

/// Performs the handshake of a stream with these settings.
awaitable<Result<std::unique_ptr<ByteStream>>> shake_hands(std::unique_ptr<EncryptedStream> stream,
                                                           ssl::stream_base::handshake_type side,
                                                           std::string option,
                                                           std::chrono::milliseconds timeout) {
  stream->expires_after(timeout);
  const auto [error] = co_await stream->tls().async_handshake(side, kAwait);
  if (error) co_return handshake_failed(error, option);
  stream->expires_never();
  co_return std::move(stream);
}

}  // namespace

struct TlsServer::Context {
  ssl::context tls;
};

TlsServer::TlsServer(std::string certificate, std::string key, std::shared_ptr<Context> context)
    : certificate_(std::move(certificate)), key_(std::move(key)), context_(std::move(context)) {}

Result<std::shared_ptr<TlsServer::Context>> TlsServer::make(const std::string& certificate,
                                                            const std::string& key) {
  TRY(check_file(certificate, false));
  TRY(check_file(key, true));
  auto context = std::make_shared<Context>(new_context(ssl::context::tls_server));
  boost::system::error_code error;
  // Without it, OpenSSL would ask for the passphrase of a key on the terminal and wait.
  context->tls.set_password_callback([](std::size_t, auto) { return std::string(); }, error);
  context->tls.use_certificate_chain_file(certificate, error);
  if (error) return not_pem(certificate, "certificate", error);
  context->tls.use_private_key_file(key, ssl::context::pem, error);
  if (error || ::SSL_CTX_check_private_key(context->tls.native_handle()) != 1) {
    const bool is_other = !error || error.message().contains("key values mismatch");
    if (!is_other) return not_pem(key, "private key without a passphrase", error);
    return fail(
        Errc::FileCorrupt,
        fmt::format("the private key {} is not that of the certificate {}; name the two files that "
                    "were made together",
                    key, certificate));
  }
  return context;
}

Result<TlsServer> TlsServer::load(const std::string& certificate, const std::string& key) {
  auto context = TRY(make(certificate, key));
  return TlsServer(certificate, key, std::move(context));
}

Result<void> TlsServer::reload() {
  context_ = TRY(make(certificate_, key_));
  return {};
}

awaitable<Result<std::unique_ptr<ByteStream>>> TlsServer::accept(Stream stream) {
  auto encrypted = std::make_unique<EncryptedStream>(std::move(stream), context_->tls, context_);
  return shake_hands(std::move(encrypted), ssl::stream_base::server, {}, kHandshakeTimeout);
}

struct TlsClient::Context {
  ssl::context tls;
};

Result<TlsClient> TlsClient::load(const std::string& authorities, std::string option) {
  auto context = std::make_shared<Context>(new_context(ssl::context::tls_client));
  context->tls.set_verify_mode(ssl::verify_peer);
  boost::system::error_code error;
  if (authorities.empty()) {
    context->tls.set_default_verify_paths(error);
    return TlsClient(std::move(context), std::move(option));
  }
  TRY(check_file(authorities, false));
  context->tls.load_verify_file(authorities, error);
  if (error) return not_pem(authorities, "certificate", error);
  return TlsClient(std::move(context), std::move(option));
}

awaitable<Result<std::unique_ptr<ByteStream>>> TlsClient::connect(
    Stream stream, std::string name, std::chrono::milliseconds timeout) {
  auto encrypted = std::make_unique<EncryptedStream>(std::move(stream), context_->tls, context_);
  boost::system::error_code error;
  asio::ip::make_address(name, error);
  if (error)  // a name, not an address
    SSL_set_tlsext_host_name(encrypted->tls().native_handle(), name.c_str());
  encrypted->tls().set_verify_callback(ssl::host_name_verification(name), error);
  return shake_hands(std::move(encrypted), ssl::stream_base::client, option_, timeout);
}

}  // namespace leasehold::http
