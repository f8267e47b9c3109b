#include "ipc/http/name_lookup.hpp"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "common/machine/process.hpp"
#include "common/machine/start_thread.hpp"

namespace leasehold::http {
namespace {

using boost::asio::ip::tcp;

std::optional<tcp::endpoint> address_in(const Url& url) {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(url.host, error);
  if (error) return std::nullopt;
  return tcp::endpoint(address, static_cast<std::uint16_t>(std::stoi(url.port)));
}

/// Returns a function that posts the cancellation to the timer's thread, so that it runs after the
/// wait has begun.
std::function<void()> cancels(std::shared_ptr<boost::asio::steady_timer> timer) {
  return [timer = std::move(timer)] {
    boost::asio::post(timer->get_executor(), [timer] { timer->cancel(); });
  };
}

}  // namespace

Result<Endpoints> resolve_name(const std::string& host, const std::string& port) {
  boost::asio::io_context io;
  boost::system::error_code error;
  const auto found = tcp::resolver(io).resolve(host, port, error);
  if (error) return fail(Errc::ConnectionRefused, fmt::format("{}: {}", host, error.message()));
  Endpoints endpoints;
  for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  return endpoints;
}

/// State shared with the detached thread.
struct NameLookup::Lookup {
  std::mutex mutex;
  std::optional<Result<Endpoints>> answer;
  std::function<void()> on_answer;  // empty: no call waits

  void set_answer(Result<Endpoints> result) {
    const std::scoped_lock lock(mutex);
    answer = std::move(result);
    if (on_answer) on_answer();
  }
  /// Sets the handler. Returns false when the answer has already arrived.
  bool wait_with(std::function<void()> handler) {
    const std::scoped_lock lock(mutex);
    on_answer = std::move(handler);
    return !answer;
  }
};

/// Removes the handler, because the executor may be destroyed when the lookup ends.
NameLookup::~NameLookup() {
  if (running_) (void)running_->wait_with({});
}

boost::asio::awaitable<Result<Endpoints>> NameLookup::find(const Url& url,
                                                           std::chrono::milliseconds timeout) {
  if (const auto address = address_in(url)) co_return Endpoints{*address};
  if (!running_) {
    const auto lookup = std::make_shared<Lookup>();
    auto thread = start_thread("the thread that resolves names",
                               [lookup, resolve = resolve_, host = url.host, port = url.port] {
                                 set_thread_name("name-lookup");
                                 lookup->set_answer(resolve(host, port));
                               });
    if (!thread) co_return std::unexpected(std::move(thread).error());
    thread->detach();
    running_ = lookup;
  }
  const auto timer = std::make_shared<boost::asio::steady_timer>(
      co_await boost::asio::this_coro::executor, timeout);
  if (running_->wait_with(cancels(timer)))
    (void)co_await timer->async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  if (running_->wait_with({}))
    co_return fail(Errc::TimedOut,
                   fmt::format("{} is not resolved within {} ms", url.host, timeout.count()));
  co_return *std::exchange(running_, nullptr)->answer;
}

}  // namespace leasehold::http
