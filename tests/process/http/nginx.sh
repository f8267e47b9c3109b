#!/usr/bin/env bash
# Debian's nginx in front of a worker, with the configuration of tools/nginx: tests/process/http/nginx.sh BIN_DIR
#
# TLS with a certificate of its own, on loopback. Exits with 77 and one line where nginx is missing.
set -euo pipefail
. "$(dirname "$0")/script.sh" "$1"
for program in nginx openssl curl; do
  PATH=$PATH:/usr/sbin command -v $program >/dev/null || skip "$program is not installed; tools/setup --ci installs it"
done
PATH=$PATH:/usr/sbin

start_broker
start_worker w1 --slow-motion-us 2000 --http-trusted-proxy 127.0.0.1 --metrics 127.0.0.1:0 --log-level debug
metrics=$(sed -n 's/.*metrics ready address=\([^ ]*\).*/\1/p' "$work/w1.log")
key=$(key_of ann)

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=llm.example.org \
  -addext subjectAltName=DNS:llm.example.org -keyout "$work/key.pem" -out "$work/cert.pem" 2>"$work/openssl.log"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
sed -e "s|127.0.0.1:8080;|$address;|" -e "s|listen 443 ssl|listen 127.0.0.1:$port ssl|" \
  -e "s|/etc/ssl/certs/llm.example.org.pem|$work/cert.pem|" \
  -e "s|/etc/ssl/private/llm.example.org.key|$work/key.pem|" "$root/tools/nginx/leasehold.conf" >"$work/leasehold.conf"
[[ $EUID == 0 ]] && user="user root root;" || user=""  # who may read the work folder
cat >"$work/nginx.conf" <<CONF
$user daemon off; pid $work/nginx.pid; error_log $work/nginx.log;
events {}
http {
  access_log off;
  client_body_temp_path $work/body; proxy_temp_path $work/proxy; fastcgi_temp_path $work/fastcgi;
  uwsgi_temp_path $work/uwsgi; scgi_temp_path $work/scgi;
  include $work/leasehold.conf;
}
CONF
nginx -c "$work/nginx.conf" -e "$work/nginx.log" &
pids=($! "${pids[@]}")

# asked KEY PATH: the options of curl for a request, in `asked`.
asked() {
  asked=(--silent --no-buffer --cacert "$work/cert.pem" --resolve "llm.example.org:$port:127.0.0.1"
    --header "Authorization: Bearer $1" --header "Content-Type: application/json" "https://llm.example.org:$port$2")
}
# ask KEY PATH CURL_OPTION…
ask() { asked "$1" "$2" && curl "${asked[@]}" "${@:3}"; }
completion() {  # MAX_TOKENS STREAM
  echo "{\"model\":\"$name\",\"prompt\":\"Once\",\"max_tokens\":$1,\"stream\":$2,\"temperature\":0,\"ignore_eos\":true}"
}
status_of() { ask "$@" --output /dev/null --write-out '%{http_code}'; }
is_healthy() { [[ $(status_of "" /health) == 200 ]]; }
wait_for is_healthy || die "nginx does not reach the worker"

# The key is checked behind the proxy.
[[ $(status_of "$key" /v1/models) == 200 ]] || die "a valid key was refused"
[[ $(status_of lh-00 /v1/models) == 401 ]] || die "a wrong key was accepted"
name=$(ask "$key" /v1/models | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')

# What a stranger consumes belongs to the address that nginx saw, whatever the client wrote.
refused_for() { grep -q "HTTP request refused client=$1 " "$work/w1.log"; }
ask lh-00 /v1/models --interface 127.0.0.2 --header "X-Forwarded-For: 203.0.113.9" >/dev/null
wait_for refused_for 127.0.0.2 || die "the forwarded address is not the client"
# Other peers than the proxy are not believed.
curl --silent --interface 127.0.0.3 --header "X-Forwarded-For: 203.0.113.9" "http://$address/v1/models" >/dev/null
wait_for refused_for 127.0.0.3 || die "the client of a direct request is not its peer"
! refused_for 203.0.113.9 || die "an address that a client made up was believed"

# Tokens pass at once: the first is there before the end. A buffer would hold all of this short text.
asked "$key" /v1/completions
curl "${asked[@]}" --data "$(completion 8 true)" --output "$work/stream.txt" &
pids=($! "${pids[@]}")
has_token() { cp "$work/stream.txt" "$work/begin.txt" && grep -q '"text":"[^"]' "$work/begin.txt"; }
wait_for has_token || die "no token came"
! grep -q DONE "$work/begin.txt" || die "the first token came with the last"
is_done() { grep -q DONE "$work/stream.txt"; }
wait_for is_done || die "the stream does not end"

# A client that leaves cancels its request, which would run for minutes.
runs() { curl --silent "http://$metrics/metrics" | grep -q "^leasehold_requests{state=\"running\"} $1$"; }
wait_for runs 0
for stream in true false; do
  asked "$key" /v1/completions
  curl "${asked[@]}" --data "$(completion 400 $stream)" >/dev/null &
  client=$!
  wait_for runs 1 || die "the request does not run"
  kill "$client"
  wait_for runs 0 || die "the request goes on without its client"
done

# The limit of a body is the door's: it reads what is shorter, and nginx refuses what is longer.
spaces() { head -c "$1" /dev/zero | tr '\0' ' ' >"$work/body.txt"; }
spaces 500000
[[ $(status_of "$key" /v1/completions --data-binary "@$work/body.txt") == 400 ]] || die "a body that fits did not reach the door"
spaces 600000
[[ $(status_of "$key" /v1/completions --data-binary "@$work/body.txt") == 413 ]] || die "a large body passed"
grep -E '\[(error|alert|emerg|crit)\]' "$work/nginx.log" | grep -v 'too large body' && die "nginx reports errors"
echo "nginx passes tokens, keys, addresses and cancellations"
