#include "tests/support/trace_collector.hpp"

#include <fcntl.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>

namespace leasehold::testing {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Json = nlohmann::json;
using asio::ip::tcp;

std::string text_of(const Json& value) {
  if (value.contains("arrayValue")) {
    std::string all;
    for (const Json& one : value.at("arrayValue").at("values"))
      all += (all.empty() ? "" : ",") + text_of(one);
    return all;
  }
  for (const char* kind : {"stringValue", "intValue"})  // both are text in OTLP's JSON
    if (value.contains(kind)) return value.at(kind).get<std::string>();
  return value.dump();
}

std::map<std::string, std::string> attributes_of(const Json& json) {
  std::map<std::string, std::string> all;
  for (const Json& each : json.value("attributes", Json::array()))
    all[each.at("key")] = text_of(each.at("value"));
  return all;
}

std::int64_t time_of(const Json& text) {
  return std::stoll(text.get<std::string>());
}

CollectedSpan span_of(const Json& json) {
  CollectedSpan span{.trace_id = json.at("traceId"),
                     .span_id = json.at("spanId"),
                     .parent_span_id = json.value("parentSpanId", ""),
                     .name = json.at("name"),
                     .kind = json.at("kind"),
                     .begin_unix_ns = time_of(json.at("startTimeUnixNano")),
                     .end_unix_ns = time_of(json.at("endTimeUnixNano")),
                     .attributes = attributes_of(json)};
  if (json.contains("status")) span.error = json.at("status").value("message", "");
  for (const Json& event : json.value("events", Json::array()))
    span.events.push_back(
        {event.at("name"), time_of(event.at("timeUnixNano")), attributes_of(event)});
  return span;
}

CollectedSpans spans_of(const Json& body) {
  CollectedSpans all;
  for (const Json& resource : body.at("resourceSpans"))
    for (const Json& scope : resource.at("scopeSpans"))
      for (const Json& span : scope.at("spans")) {
        all.push_back(span_of(span));
        all.back().resource = attributes_of(resource.at("resource"));
      }
  return all;
}

std::string answer(const std::string& status, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\nConnection: close\r\nContent-Type: application/json\r\n" +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

struct TraceCollector::Session : std::enable_shared_from_this<Session> {
  Session(TraceCollector& to, tcp::socket connected)
      : collector(&to), socket(std::move(connected)) {
    parser.body_limit(64 << 20);
  }
  void read() {
    http::async_read(socket, buffer, parser,
                     [self = shared_from_this()](boost::system::error_code error, std::size_t) {
                       if (!error) self->collector->reply(*self);
                     });
  }
  void write(std::string text) {
    sent = std::move(text);
    asio::async_write(socket, asio::buffer(sent),
                      [self = shared_from_this()](boost::system::error_code, std::size_t) {
                        boost::system::error_code ignored;
                        self->socket.shutdown(tcp::socket::shutdown_send, ignored);
                      });
  }

  TraceCollector* collector;
  tcp::socket socket;
  boost::beast::flat_buffer buffer;
  http::request_parser<http::string_body> parser;
  std::string sent;
};

TraceCollector::TraceCollector() {
  const tcp::endpoint at(asio::ip::make_address("127.0.0.1"), 0);
  acceptor_.open(at.protocol());
  (void)::fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
  acceptor_.bind(at);
  acceptor_.listen();
  port_ = acceptor_.local_endpoint().port();
  accept();
  thread_ = std::thread([this] {
    const auto work = asio::make_work_guard(io_);
    io_.run();
  });
}

TraceCollector::~TraceCollector() {
  io_.stop();
  thread_.join();
}

void TraceCollector::accept() {
  acceptor_.async_accept([this](boost::system::error_code error, tcp::socket socket) {
    if (error) return;
    (void)::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
    std::make_shared<Session>(*this, std::move(socket))->read();
    accept();
  });
}

void TraceCollector::behave(Mode mode) {
  const std::scoped_lock lock(mutex_);
  mode_ = mode;
}

void TraceCollector::reply(Session& session) {
  const std::scoped_lock lock(mutex_);
  ++requests_;
  const auto& request = session.parser.get();
  const bool is_export = request.method() == http::verb::post && request.target() == "/v1/traces" &&
                         request[http::field::content_type] == "application/json";
  if (!is_export) {
    session.write(answer("404 Not Found", "{}"));
  } else if (mode_ == Mode::Silent) {
    silent_.push_back(session.shared_from_this());
  } else if (mode_ == Mode::Unavailable) {
    session.write(answer("503 Service Unavailable", "{}"));
  } else {
    for (CollectedSpan& span : spans_of(Json::parse(request.body())))
      spans_.push_back(std::move(span));
    const bool rejects = mode_ == Mode::RejectOne;
    session.write(answer("200 OK", rejects ? R"({"partialSuccess":{"rejectedSpans":"1"}})" : "{}"));
  }
  changed_.notify_all();
}

CollectedSpans TraceCollector::spans() const {
  const std::scoped_lock lock(mutex_);
  return spans_;
}

int TraceCollector::requests() const {
  const std::scoped_lock lock(mutex_);
  return requests_;
}

bool TraceCollector::wait(const std::function<bool(const CollectedSpans&)>& holds) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return holds(spans_); });
}

bool TraceCollector::wait_for_requests(int count) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return requests_ >= count; });
}

}  // namespace leasehold::testing
