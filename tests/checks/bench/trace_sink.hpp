/// A collector of traces on the loopback device that accepts every batch without reading it.
///
/// Threads: one of its own.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string>
#include <thread>

namespace leasehold::bench {

class TraceSink {
 public:
  TraceSink() {
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~TraceSink() {
    io_.stop();
    thread_.join();
  }
  TraceSink(const TraceSink&) = delete;
  TraceSink& operator=(const TraceSink&) = delete;

  std::string url() const {
    return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }

 private:
  using Tcp = boost::asio::ip::tcp;

  void accept() {
    acceptor_.async_accept([this](boost::system::error_code error, Tcp::socket socket) {
      if (error) return;
      answer(socket);
      accept();
    });
  }

  /// Blocks: the worker sends one batch at a time.
  static void answer(Tcp::socket& socket) {
    namespace http = boost::beast::http;
    constexpr std::string_view kAnswer =
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
    boost::beast::flat_buffer buffer;
    http::request_parser<http::string_body> request;
    request.body_limit(64 << 20);
    boost::system::error_code error;
    http::read(socket, buffer, request, error);
    if (!error) boost::asio::write(socket, boost::asio::buffer(kAnswer), error);
  }

  boost::asio::io_context io_;
  Tcp::acceptor acceptor_{io_, Tcp::endpoint(boost::asio::ip::make_address("127.0.0.1"), 0)};
  std::thread thread_;
};

}  // namespace leasehold::bench
