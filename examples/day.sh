#!/usr/bin/env bash
# A day with carronade, on embedded servers: first run, a ceiling by hand, settings compared, a
# gate, a hunt for lost events, old scripts, Prometheus (needs curl), DuckDB (the program, or the
# Python module). It takes about a minute.
#
#   examples/day.sh                          with carronade from the PATH
#   CARRONADE=./carronade examples/day.sh    with this one
#
# Exit code 3 means that this machine was too busy to trust a run. The script goes on then; in
# CI you would not.
set -euo pipefail

carronade=${CARRONADE:-carronade}
command -v "$carronade" > /dev/null || { echo "carronade is not in the PATH; set CARRONADE to the program" >&2; exit 2; }
carronade=$(command -v "$carronade")
case $carronade in /*) ;; *) carronade=$PWD/$carronade ;; esac

day=$(mktemp -d)
export XDG_DATA_HOME=$day/data XDG_CACHE_HOME=$day/cache XDG_CONFIG_HOME=$day/config
cd "$day"
servers=()
finish() {
  for pid in ${servers[@]+"${servers[@]}"}; do kill "$pid" 2> /dev/null || true; done
  wait
  rm -rf "$day"
}
trap finish EXIT

title() { printf '\n== %s\n' "$*"; }

# c CODES ARGS... runs carronade and requires one of the exit codes, such as 0,3.
c() {
  local want=$1 code=0
  shift
  printf '\n$ carronade %s\n' "$*"
  "$carronade" "$@" || code=$?
  case ",$want," in
    *",$code,"*) ;;
    *) echo "day.sh: exit code $code, want $want" >&2; exit 1 ;;
  esac
}

# serve NAME ARGS... starts a stand-in in the background and sets the variable NAME to its
# address, and NAME_pid to its process.
serve() {
  local name=$1 log=$day/$1.log address=
  shift
  : > "$log" # sed may read it before the stand-in's shell has opened it
  "$carronade" standin "$@" > "$log" 2>&1 &
  servers+=($!)
  printf -v "${name}_pid" %s $!
  for _ in $(seq 100); do
    address=$(sed -n 's/^listening on \([^ ]*\).*/\1/p' "$log" | head -n 1)
    [ -n "$address" ] && break
    sleep 0.1
  done
  [ -n "$address" ] || { cat "$log" >&2; exit 1; }
  printf -v "$name" %s "$address"
}

title "The first run: an embedded broker, ten seconds of load, a report"
c 0,3 demo

title "The ceiling, by hand: the highest step that holds the limits"
serve kafka kafka --listen 127.0.0.1:0 --in-memory --topic orders:4
c 0,3,4 run "kafka://$kafka/orders" --shape 'steps(5k/s..20k/s,5k/s,2s)' --slo 'p99<1s' --slo 'target-share>=90%' --quiet

title "Which settings matter: acks and compression, two runs each"
for acks in 1 all; do
  c 0,3 run "kafka://$kafka/orders" --rate 5k/s --for 1s --repeat 2 --acks "$acks" --label part=acks --quiet > acks.txt
done
c 0 collate acks label.part=acks
for codec in none lz4 zstd; do
  c 0,3 run "kafka://$kafka/orders" --rate 5k/s --for 1s --compression "$codec" --label part=codec --quiet > codec.txt
done
c 0 collate compression label.part=codec

title "A gate: a limit that holds, and one that a slow server breaks"
c 0,3 run "kafka://$kafka/orders" --rate 2k/s --for 2s --slo 'p99<10s' --slo failed=0 --quiet
serve slow kafka --listen 127.0.0.1:0 --in-memory --topic orders:4 --delay 200ms
c 1 run "kafka://$slow/orders" --rate 2k/s --for 2s --slo 'p50<100ms' --quiet

title "A regression: two revisions, four runs each"
for revision in 1.0 1.1; do
  at=$kafka
  [ "$revision" = 1.0 ] || at=$slow
  c 0,3 run "kafka://$at/orders" --rate 2k/s --for 1s --repeat 4 --revision "$revision" --label part=gate --quiet > gate.txt
done
c 1,4 compare label.part=gate,revision=1.0 label.part=gate,revision=1.1 --untrusted --gate

title "Lost events: a broker is killed in the middle of a verified run, and started again"
serve broker kafka --listen 127.0.0.1:0 --data-dir "$day/broker" --topic orders:4
(
  sleep 2
  kill -9 "$broker_pid"
  sleep 1
  exec "$carronade" standin kafka --listen "$broker" --data-dir "$day/broker" --topic orders:4 > "$day/again.log" 2>&1
) &
servers+=($!)
c 0,3 run "kafka://$broker/orders" --rate 2k/s --for 8s --verify --slo lost=0 --quiet

title "Old scripts keep working"
c 0,3 as kafka-producer-perf-test --topic orders --num-records 20000 --record-size 100 --throughput 10000 --bootstrap-server "$kafka"
c 0,3 as kafka-consumer-perf-test --topic orders --messages 10000 --bootstrap-server "$kafka"

title "Prometheus reads the last values after the end of a run"
if command -v curl > /dev/null; then
  "$carronade" run "kafka://$kafka/orders" --rate 2k/s --for 2s --metrics-addr 127.0.0.1:0 --metrics-linger 20s --quiet > linger.txt 2> linger.err &
  run=$!
  servers+=("$run")
  for _ in $(seq 100); do
    metrics=$(sed -n 's|.*\(http://127.0.0.1:[0-9]*/metrics\).*|\1|p' linger.err | head -n 1)
    [ -n "$metrics" ] && curl -sf "$metrics" > metrics.txt && grep -q '^carronade_run_active.* 0$' metrics.txt && break
    sleep 0.2
  done
  grep '^carronade_acked_events_total' metrics.txt || { cat linger.err >&2; exit 1; }
  kill -INT "$run"
  code=0
  wait "$run" || code=$?
  echo "exit code of the run: $code"
  case $code in 0 | 3) ;; *) exit 1 ;; esac
else
  echo "left out: curl is missing"
fi

title "DuckDB reads a row for each batch"
c 0,3 run "kafka://$kafka/orders" --rate 2k/s --for 2s --trace run.parquet --quiet > traced.txt
query="select count(*) as batches, round(max(done_ns - sent_ns) / 1e6) as slowest_ms from 'run.parquet'"
if command -v duckdb > /dev/null; then
  duckdb -c "$query"
elif python3 -c 'import duckdb' 2> /dev/null; then
  python3 -c "import duckdb; print(duckdb.sql(\"$query\"))"
else
  echo "left out: DuckDB is missing"
fi

title "All of today's runs"
c 0 report list --columns id,target,rate,acks,compression,limits,exit

printf '\nday.sh: done\n'
