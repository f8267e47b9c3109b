#include "tests/process/http/http_client.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <charconv>

#include "ipc/control/tokens/api_key.hpp"

namespace leasehold::testing {
namespace {

namespace asio = boost::asio;
using Endpoint = asio::generic::stream_protocol::endpoint;

Endpoint endpoint_of(const std::string& address) {
  if (address.starts_with('/')) return asio::local::stream_protocol::endpoint(address);
  const auto colon = address.rfind(':');
  return asio::ip::tcp::endpoint(asio::ip::make_address(address.substr(0, colon)),
                                 static_cast<std::uint16_t>(std::stoul(address.substr(colon + 1))));
}

/// The body of chunks that are complete; `done` after the last one.
std::string joined(std::string_view chunks, bool& done) {
  std::string body;
  while (true) {
    const auto line = chunks.find("\r\n");
    if (line == std::string_view::npos) return body;
    std::size_t size = 0;
    std::from_chars(chunks.data(), chunks.data() + line, size, 16);
    if (chunks.size() < line + 2 + size + 2) return body;
    body += chunks.substr(line + 2, size);
    done = size == 0;
    if (done) return body;
    chunks.remove_prefix(line + 2 + size + 2);
  }
}

std::size_t length_of(const std::string& head) {
  constexpr std::string_view kName = "Content-Length: ";
  const auto at = head.find(kName);
  return at == std::string::npos ? 0 : std::stoul(head.substr(at + kName.size()));
}

}  // namespace

std::string logged_address(const System& system, std::string_view before) {
  const std::string log = system.worker_log();
  const auto at = log.find(before);
  if (at == std::string::npos) throw std::runtime_error("the worker logged no address");
  const auto from = at + before.size();
  return log.substr(from, log.find_first_of(" \n", from) - from);
}

namespace {

/// The lines of each event, without the empty line at its end.
std::vector<std::string> blocks_of(const std::string& body) {
  std::vector<std::string> all;
  std::size_t from = 0;
  for (auto end = body.find("\n\n"); end != std::string::npos; end = body.find("\n\n", from)) {
    all.push_back(body.substr(from, end - from));
    from = end + 2;
  }
  return all;
}

}  // namespace

std::vector<std::string> HttpReply::events() const {
  constexpr std::string_view kData = "data: ";
  std::vector<std::string> all;
  for (const std::string& block : blocks_of(body)) {
    const std::size_t data = block.find(kData);  // a slow host also sends comments
    if (data != std::string::npos) all.push_back(block.substr(data + kData.size()));
  }
  return all;
}

std::vector<std::string> HttpReply::ids() const {
  constexpr std::string_view kId = "id: ";
  std::vector<std::string> all;
  for (const std::string& block : blocks_of(body))
    if (block.starts_with(kId))
      all.push_back(block.substr(kId.size(), block.find('\n') - kId.size()));
  return all;
}

HttpClient::HttpClient(const std::string& address) {
  socket_.connect(endpoint_of(address));
}

void HttpClient::write(const std::string& text) {
  boost::system::error_code ignored;  // the server may refuse before it has read all
  boost::asio::write(socket_, boost::asio::buffer(text), ignored);
}

bool HttpClient::read_some() {
  std::array<char, 4096> buffer{};
  boost::system::error_code error;
  const std::size_t size = socket_.read_some(boost::asio::buffer(buffer), error);
  read_.append(buffer.data(), size);
  return !error;
}

bool HttpClient::read_until(const std::function<bool(const std::string&)>& holds) {
  while (!holds(read_))
    if (!read_some()) return false;
  return true;
}

HttpReply HttpClient::reply() {
  HttpReply reply;
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  const auto has_head = [&](std::string& text) {
    if (text.starts_with(kContinue)) text.erase(0, kContinue.size());
    return text.contains("\r\n\r\n");
  };
  while (!has_head(read_))
    if (!read_some()) return reply;
  const auto end = read_.find("\r\n\r\n") + 4;
  reply.head = read_.substr(0, end);
  reply.status = std::stoi(reply.head.substr(reply.head.find(' ')));
  const bool chunked = reply.head.contains("chunked");
  const std::size_t length = length_of(reply.head);
  bool done = false;
  std::size_t size = length;  // of the body as it is sent
  read_until([&](const std::string& text) {
    if (!chunked) return text.size() >= end + length;
    reply.body = joined(std::string_view(text).substr(end), done);
    size = text.find("\r\n0\r\n\r\n", end) + 7 - end;
    return done;
  });
  if (!chunked) reply.body = read_.substr(end, length);
  read_.erase(0, end + size);
  return reply;
}

HttpReply HttpClient::so_far() const {
  HttpReply reply{.status = std::stoi(read_.substr(read_.find(' ')))};
  bool done = false;
  reply.body = joined(std::string_view(read_).substr(read_.find("\r\n\r\n") + 4), done);
  return reply;
}

bool HttpClient::is_closed() {
  return !read_until([](const std::string& text) { return !text.empty(); });
}

std::string get(const std::string& path, const std::string& key) {
  return "GET " + path + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + key + "\r\n\r\n";
}

std::string post(const std::string& path, const std::string& key, const Json& body,
                 const std::string& more) {
  const std::string text = body.dump();
  return "POST " + path + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + key + "\r\n" + more +
         "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
}

HttpSystem::HttpSystem(std::vector<std::string> worker_arguments, Transport transport)
    : directory_(TemporaryDirectory::create("http")),
      path_((directory_.value().path() / "http.sock").string()) {
  if (std::ranges::find(worker_arguments, "--http-idle-ttl-ms") == worker_arguments.end())
    worker_arguments.insert(worker_arguments.end(), {"--http-idle-ttl-ms", "0"});
  worker_arguments.insert(worker_arguments.end(),
                          {"--http", transport == Transport::Tcp ? "127.0.0.1:0" : path_});
  system_ = std::make_unique<System>(SystemSpec{.worker_arguments = std::move(worker_arguments)});
  if (transport == Transport::Tcp) path_ = logged_address(*system_, "HTTP ready address=");
}

std::string HttpSystem::key_of(const std::string& tenant) {
  const std::string key = mint_api_key();
  system_->view()
      .command(wire::KeyCreate{.tenant = {tenant}, .hash = hash_of_api_key(key)})
      .value();
  return key;
}

int HttpSystem::revoke(const std::string& key) {
  return system_->brokerctl({"keys", "revoke", api_key_id(hash_of_api_key(key)).value});
}

std::string HttpSystem::model(const std::string& key) {
  return send(get("/v1/models", key)).json().at("data").at(0).at("id");
}

Json HttpSystem::completion(const std::string& key, int max_tokens, bool stream) {
  return {{"model", model(key)},
          {"prompt", "Once upon a time"},
          {"max_tokens", max_tokens},
          {"temperature", 0},
          {"ignore_eos", true},
          {"stream", stream},
          {"stream_options", {{"include_usage", true}}}};
}

std::string text_of(const HttpReply& streamed) {
  std::string text;
  for (const std::string& event : streamed.events()) {
    const Json json = Json::parse(event, nullptr, false);
    if (json.is_object() && json.contains("choices") && !json["choices"].empty())
      text += json["choices"][0]["text"].get<std::string>();
  }
  return text;
}

}  // namespace leasehold::testing
