#include "worker/program/http_service.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <ctime>
#include <ranges>
#include <thread>

#include "worker/program/cell_link.hpp"
#include "worker/program/request_directory.hpp"
#include "worker/serve/prompt.hpp"
#include "worker/serve/resumable_streams.hpp"
#include "worker/serve/stopping.hpp"
#include "worker/text/chat/reasoning.hpp"

namespace leasehold {
namespace {

constexpr auto kCheckTimeout = std::chrono::seconds(10);
constexpr auto kHttpCloseWaitInterval = std::chrono::milliseconds(5);
constexpr int kMaxHttpCloseWaits = 200;

Result<wire::TenantCheck> removed_tenants_of(Result<control::Payload> reply) {
  return wire::TenantCheck::from_json(TRY(std::move(reply)).body);
}

Result<http::AdapterModels::Adapters> adapters_of(Result<control::Payload> reply) {
  const control::Payload answered = TRY(std::move(reply));
  return TRY(wire::AdaptersVisible::from_json(answered.body)).adapters;
}

/// Null for a worker that loads no adapters.
http::AdapterModels::List list_adapters(const WorkerOptions& options, BrokerLink& broker) {
  if (options.adapters_dir.empty()) return nullptr;
  return [&broker](const TenantId& tenant, http::AdapterModels::OnListed done) {
    broker.call_async(
        std::string(wire::AdapterVisible::kMethod),
        {.body = wire::AdapterVisible{.tenant = tenant}.to_json()},
        [done = std::move(done)](Result<control::Payload> reply) mutable {
          done(adapters_of(std::move(reply)));
        },
        kCheckTimeout);
  };
}

/// True if the prompt of a chat with these template variables ends inside the model's reasoning, as
/// for some models.
bool begins_inside_reasoning(const PromptEncoder& prompts, const std::string& kwargs) {
  constexpr std::size_t kLastTokens = 16;  // more than a marker has
  wire::RequestSubmit asked;
  asked.messages.emplace().push_back({.role = "user", .content = "Hi"});
  asked.chat_template_kwargs = kwargs;
  const auto tokens = prompts.encode(asked, std::time(nullptr));
  if (!tokens) return false;
  std::string end;
  for (const TokenId token :
       *tokens | std::views::drop(tokens->size() - std::min(tokens->size(), kLastTokens))) {
    const std::string_view piece = prompts.tokenizer->piece(token);
    end += piece.empty() ? prompts.tokenizer->text(token) : piece;
  }
  return ends_inside_reasoning(end);
}

/// Answers for requests without variables at once.
auto reasoning_check(const PromptEncoder& prompts) {
  return [prompts, otherwise = begins_inside_reasoning(prompts, {})](const std::string& kwargs) {
    return kwargs.empty() ? otherwise : begins_inside_reasoning(prompts, kwargs);
  };
}

/// When the model's file, of a split one the first, was last changed; 0 if it is not there now.
std::int64_t changed_unix_s(const GgufFile& file) {
  const auto identity = FileIdentity::of_path(file.path());
  return identity ? identity->mtime_ns / std::nano::den : 0;
}

}  // namespace

Result<void> HttpService::open(const WorkerOptions& options, const TextIdentity& identity,
                               const Dependencies& deps) {
  if (!options.http) return {};
  const OpenedModel& model = *deps.model;
  if (!options.batch_dir.empty())
    batches_ = TRY(batch::BatchStore::open(options.batch_dir, options.batch_limits));
  const auto cell =
      std::make_shared<CellLink>(io_.context(), *deps.clock, *deps.broker, options.cell_socket);
  http::Server::Dependencies dependencies{
      .io = &io_.context(),
      .clock = deps.clock,
      .check_key =
          [cell](wire::KeyCheck key, std::optional<HostName> moved_from,
                 http::Server::OnChecked done) {
            cell->check(std::move(key), std::move(moved_from), std::move(done));
          },
      .want_part = [cell](wire::PartWant wanted) { cell->want_part(std::move(wanted)); },
      .check_tenants =
          [&broker = *deps.broker](const wire::TenantCheck& check,
                                   http::Server::OnTenantsChecked done) {
            broker.call_async(
                std::string(wire::TenantCheck::kMethod), {.body = check.to_json()},
                [done = std::move(done)](Result<control::Payload> reply) mutable {
                  done(removed_tenants_of(std::move(reply)));
                },
                kCheckTimeout);
          },
      .broker_socket = options.broker_socket,
      .worker = options.name,
      .host_name = options.host_name,
      .trusted_proxies = options.http_trusted_proxies,
      .model = {.name = model.config.name,
                .aliases = model.aliases,
                .text_identity = to_string(identity),
                .max_context = model.config.n_context,
                .n_vocab = static_cast<std::uint32_t>(model.tokenizer.n_vocab()),
                .begins_inside_reasoning = reasoning_check(model.prompt_encoder()),
                .embedding_width = model.config.n_embd,
                .changed_unix_s = changed_unix_s(*model.file)},
      .list_adapters = list_adapters(options, *deps.broker),
      .load = deps.load,
      .tokenizer = &model.tokenizer,
      .encode_chat =
          [prompt = model.prompt_encoder()](const wire::RequestSubmit& chat) {
            return prompt.encode(chat, std::time(nullptr));
          },
      .stopping = worker_stopping(),
      .idle_ttl = options.http_idle_ttl,
      .result_grace = ResumableStreams::kResultGrace,
      .health = deps.health,
      .tracing = deps.tracing,
      .list_detached =
          [requests = deps.requests](const TenantId& tenant, http::Server::OnListed done) {
            requests->list_detached(tenant, std::move(done));
          },
      .stop_requests =
          [requests = deps.requests](std::vector<std::string> ids, auto done) {
            requests->stop(std::move(ids), cancelled_by_owner(), std::move(done));
          },
      .refused_keys = deps.refused_keys,
      .allowed_origins = options.http_allowed_origins,
      .heartbeat = options.http_heartbeat,
      .batch_store = batches_.get(),
      .batch_lines = deps.batch_lines,
      .max_file_bytes = batches_ ? options.batch_limits.quota_bytes : 0};
  server_ = TRY(http::Server::create(*options.http, std::move(dependencies)));
  TRY(io_.start("http"));
  TRY(io_.run([this]() -> Result<void> {
    server_->serve();
    return {};
  }));
  spdlog::info("HTTP ready address={} model=\"{}\"", server_->listens_on(), model.config.name);
  return {};
}

void HttpService::with_answers(std::move_only_function<void(http::RunningAnswers*)> use) {
  if (!server_) return use(nullptr);
  boost::asio::post(io_.context(),
                    [this, use = std::move(use)]() mutable { use(&server_->running_answers()); });
}

void HttpService::forget_adapters() {
  if (server_) server_->forget_adapters();
}

void HttpService::close() {
  if (!server_) return;
  const auto run_until = [this](void (http::Server::*begin)(), const auto& is_done) {
    bool done = false;
    for (int wait = 0; wait < kMaxHttpCloseWaits && !done; ++wait) {
      if (wait > 0) std::this_thread::sleep_for(kHttpCloseWaitInterval);
      (void)io_.run([&]() -> Result<void> {
        if (wait == 0) (*server_.*begin)();
        done = is_done();
        return {};
      });
    }
  };
  run_until(&http::Server::end_answers, [this] { return !server_->is_answering(); });
  run_until(&http::Server::close, [this] { return server_->is_closed(); });
}

}  // namespace leasehold
