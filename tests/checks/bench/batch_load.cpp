#include "tests/checks/bench/batch_load.hpp"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

namespace leasehold::bench {
namespace {

using Json = nlohmann::json;

constexpr auto kPollInterval = std::chrono::milliseconds(10);
constexpr int kMaxPolls = 3'000;
constexpr const char* kBoundary = "batch-of-the-benchmark";

std::string lines_of(std::uint32_t count) {
  std::string lines;
  for (std::uint32_t i = 0; i < count; ++i) {
    lines += fmt::format(R"({{"custom_id":"{}","method":"POST","url":"/v1/completions","body":)"
                         R"({{"prompt":"Once {}","max_tokens":64}}}})",
                         i, i);
    lines += '\n';
  }
  return lines;
}

}  // namespace

Result<BatchLoad> BatchLoad::create(std::string http_path, std::string key, std::uint32_t lines) {
  BatchLoad load(std::move(http_path), std::move(key));
  const auto part = [](const char* name) {
    return fmt::format(
        "--{}\r\nContent-Disposition: form-data; name=\"{}\"; filename=\"f\"\r\n\r\n", kBoundary,
        name);
  };
  const std::string form = part("purpose") + "batch\r\n" + part("file") + lines_of(lines) +
                           fmt::format("\r\n--{}--\r\n", kBoundary);
  const std::string answer = TRY(load.ask(
      "POST", "/v1/files", fmt::format("multipart/form-data; boundary={}", kBoundary), form));
  load.file_ = Json::parse(answer).at("id").get<std::string>();
  return load;
}

Result<void> BatchLoad::begin() {
  const Json wanted{
      {"input_file_id", file_}, {"endpoint", "/v1/completions"}, {"completion_window", "24h"}};
  std::string answer = TRY(ask("POST", "/v1/batches", "application/json", wanted.dump()));
  batch_ = Json::parse(answer).at("id").get<std::string>();
  for (int poll = 0; poll < kMaxPolls; ++poll) {
    answer = TRY(ask("GET", "/v1/batches/" + batch_));
    if (Json::parse(answer).at("request_counts").at("completed") > 0) return {};
    std::this_thread::sleep_for(kPollInterval);
  }
  return fail(Errc::TimedOut, "the batch does not run: " + answer);
}

Result<std::uint32_t> BatchLoad::end() {
  (void)TRY(ask("POST", "/v1/batches/" + batch_ + "/cancel"));
  for (int poll = 0; poll < kMaxPolls; ++poll) {
    const Json batch = Json::parse(TRY(ask("GET", "/v1/batches/" + batch_)));
    if (batch.at("status") == "cancelled")
      return batch.at("request_counts").at("completed").get<std::uint32_t>();
    std::this_thread::sleep_for(kPollInterval);
  }
  return fail(Errc::TimedOut, "the batch does not end");
}

Result<std::string> BatchLoad::ask(const std::string& method, const std::string& path,
                                   const std::string& content_type, const std::string& body) const {
  boost::asio::io_context io;
  boost::asio::local::stream_protocol::socket socket(io);
  boost::system::error_code error;
  socket.connect(http_path_, error);
  std::string request = fmt::format(
      "{} {} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {}\r\nConnection: close\r\n"
      "Content-Length: {}\r\n",
      method, path, key_, body.size());
  if (!content_type.empty()) request += "Content-Type: " + content_type + "\r\n";
  request += "\r\n" + body;
  if (!error) boost::asio::write(socket, boost::asio::buffer(request), error);
  std::string answer;
  if (!error) boost::asio::read(socket, boost::asio::dynamic_buffer(answer), error);
  if (error != boost::asio::error::eof)
    return fail(Errc::ConnectionLost, method + " " + path + ": " + error.message());
  const std::size_t head = answer.find("\r\n\r\n");
  if (!answer.starts_with("HTTP/1.1 200") || head == std::string::npos)
    return fail(Errc::BadRequest, method + " " + path + ": " + answer);
  return answer.substr(head + 4);
}

}  // namespace leasehold::bench
