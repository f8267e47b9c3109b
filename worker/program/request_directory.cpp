#include "worker/program/request_directory.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <limits>
#include <utility>

namespace leasehold {
namespace {

using control::Payload;
using control::Responder;

}  // namespace

Error cancelled_by_operator() {
  return {Errc::RequestCancelled, "an operator cancelled this request; do not submit it again"};
}

Error cancelled_by_owner() {
  return {Errc::RequestCancelled, "a client of this tenant cancelled this request"};
}

bool RequestDirectory::answers(std::string_view method) {
  return method == wire::RequestList::kMethod || method == wire::RequestStop::kMethod;
}

void RequestDirectory::on_call(const std::string& method, const control::Json& body,
                               Responder respond) {
  if (method == wire::RequestList::kMethod) {
    auto message = wire::RequestList::from_json(body);
    if (!message) return respond(std::unexpected(message.error()));
    return list(*std::move(message), std::move(respond));
  }
  auto message = wire::RequestStop::from_json(body);
  if (!message) return respond(std::unexpected(message.error()));
  stop(std::move(message->ids), cancelled_by_operator(),
       [this, respond = std::move(respond)](std::vector<RequestId> stopped) mutable {
         wire::RequestsStopped reply;
         for (RequestId& id : stopped) reply.ids.push_back(std::move(id.value));
         boost::asio::post(*deps_.io,
                           [reply = std::move(reply), respond = std::move(respond)]() mutable {
                             respond(Payload{.body = reply.to_json()});
                           });
       });
}

void RequestDirectory::list(wire::RequestList list, Responder respond) {
  deps_.http->with_answers([this, list = std::move(list), respond = std::move(respond)](
                               const http::RunningAnswers* answers) mutable {
    std::vector<wire::RequestView> http;
    if (answers != nullptr) http = answers->views(deps_.clock->now());
    keep_listed(list, http);
    boost::asio::post(*deps_.tenant_io, [this, list = std::move(list), http = std::move(http),
                                         respond = std::move(respond)]() mutable {
      std::unordered_set<RequestId> named;
      for (const wire::RequestView& view : http) named.insert({view.id});
      const RequestOperations& operations = deps_.server->operations();
      auto served = operations.views(list, named);
      auto ended = operations.ended(list);
      boost::asio::post(
          *deps_.io, [list = std::move(list), http = std::move(http), served = std::move(served),
                      ended = std::move(ended), respond = std::move(respond)]() mutable {
            wire::RequestPage page = page_of(list, std::move(served), std::move(http));
            if (page.items.empty()) page.ended = std::move(ended);
            respond(Payload{.body = page.to_json()});
          });
    });
  });
}

void RequestDirectory::list_detached(const TenantId& tenant, OnListed done) {
  boost::asio::post(*deps_.tenant_io, [this, tenant, done = std::move(done)]() mutable {
    const wire::RequestList all{.tenant = tenant, .limit = std::numeric_limits<int>::max()};
    auto views = deps_.server->operations().views(all, {});
    std::erase_if(views, [](const wire::RequestView& view) { return !view.detached; });
    done(std::move(views));
  });
}

/// The worker's requests are stopped first, so that their ends have the reason. Then the answers
/// that have no lease or were moved to another worker, which the tenants' thread does not know, are
/// ended.
void RequestDirectory::stop(std::vector<std::string> ids, Error why, OnStopped done) {
  std::vector<RequestId> wanted;
  for (std::string& id : ids) wanted.push_back({std::move(id)});
  deps_.http->with_answers([this, wanted = std::move(wanted), why = std::move(why),
                            done = std::move(done)](const http::RunningAnswers* answers) mutable {
    std::unordered_set<RequestId> all(wanted.begin(), wanted.end());
    if (answers != nullptr) all = answers->with_other_choices(wanted);
    boost::asio::post(*deps_.tenant_io, [this, all = std::move(all), why = std::move(why),
                                         done = std::move(done)]() mutable {
      const std::vector<RequestId> every(all.begin(), all.end());
      auto stopped = deps_.server->operations().stop(every, why);
      deps_.http->with_answers([all = std::move(all), why = std::move(why),
                                stopped = std::move(stopped),
                                done = std::move(done)](http::RunningAnswers* running) mutable {
        if (running != nullptr)
          std::ranges::move(running->end(all, stopped, why), std::back_inserter(stopped));
        std::ranges::sort(stopped);
        stopped.erase(std::ranges::unique(stopped).begin(), stopped.end());
        done(std::move(stopped));
      });
    });
  });
}

}  // namespace leasehold
