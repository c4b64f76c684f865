package mongoose

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/run/trace"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// A result is the result of a command line.
type result struct {
	out, errs string
	code      int
	err       error
	settings  map[string]string
	topics    *dropin.TopicLoad
	names     []string          // of the topics that were requested
	dir       string            // of the step's files
	files     map[string]string // contents by name
}

// runTool runs the tool on made-up data: 12 s and at most 90,000 records of a
// kibibyte, of which twelve failed; or the requested topics, of which every seventh
// fails.
func runTool(t *testing.T, p dropin.Program, args ...string) result {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Chdir(home)
	got := result{settings: make(map[string]string)}
	var out, errs bytes.Buffer
	p.Called, p.Args, p.Out, p.Err = "mongoose", args, &out, &errs
	p.Run = func(_ context.Context, d *workload.Document, observer dropin.Observer) (*report.Document, error) {
		for _, e := range d.Entries {
			if old, ok := got.settings[e.Name]; ok && (e.Name == "label" || e.Name == "header") {
				e.Values = append([]string{old}, e.Values...)
			}
			got.settings[e.Name] = strings.Join(e.Values, " ")
		}
		sendRows(observer)
		for i := range 12 {
			if observer.Completed != nil {
				observer.Completed([]load.Outcome{
					{Batch: load.Batch{Events: 5000}, Done: 2 * time.Millisecond, Acked: 5000},
					{Batch: load.Batch{Events: 2501}, Done: 6 * time.Millisecond, Acked: 2500, Failed: 1},
				})
			}
			if observer.Arrived != nil { // 5,000 records 3 ms after the previous poll, and 2,500 after 7 ms
				at := time.Duration(i) * 10 * time.Millisecond
				observer.Arrived(0, []load.Arrival{{Events: 3000, At: at + 3*time.Millisecond}, {Log: 1, Events: 2000, At: at + 3*time.Millisecond}})
				observer.Arrived(0, []load.Arrival{{Events: 2500, At: at + 10*time.Millisecond}})
			}
			observer.Interval(interval(time.Duration(i)*time.Second, got.settings["rate"] != "", got.settings["op"] == workload.Consume))
		}
		return document(), nil
	}
	p.Topics = func(_ context.Context, d *workload.Document, l dropin.TopicLoad) (*dropin.TopicResult, error) {
		for _, e := range d.Entries {
			got.settings[e.Name] = strings.Join(e.Values, " ")
		}
		r := &dropin.TopicResult{Elapsed: 2 * time.Second}
		names := l.Names
		switch {
		case l.Next != nil:
			for range min(max(l.Times, 0), 1000) {
				names = append(names, l.Next())
			}
		case l.Times < 0:
			names = []string{"again"}
		case l.Op == "list":
			names = make([]string, max(l.Times, 1))
		case l.Times > 0:
			for i := len(names); i < l.Times; i++ {
				names = append(names, names[i-len(l.Names)])
			}
		}
		l.Started(time.Now())
		got.names = names
		for i, name := range names {
			at := time.Duration(i+1) * time.Millisecond
			done := dropin.TopicDone{Name: name, Due: at - 900*time.Microsecond, Sent: at - 800*time.Microsecond, At: at, Bytes: 100, InFlight: 1}
			if i%7 == 6 {
				done.Class, done.Err = "rejected", errors.New("topic exists")
				r.Failed++
			} else {
				r.Done++
			}
			l.Each(done)
		}
		got.topics = &l
		return r, nil
	}
	p.Node = func(context.Context, dropin.NodeOptions) (*dropin.Node, error) {
		return nil, errors.New("no node here")
	}
	p.Nodes = func(context.Context, dropin.NodesOptions) (*dropin.Nodes, error) {
		return nil, errors.New("no nodes here")
	}
	got.code, got.err = Tool.Main(t.Context(), &p)
	got.out, got.errs = out.String(), errs.String()
	got.files = make(map[string]string)
	_ = filepath.WalkDir(home, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			data, _ := os.ReadFile(path)
			got.files[e.Name()] = string(data)
			if e.Name() == "config.yaml" {
				got.dir = filepath.Dir(strings.TrimPrefix(path, home))
			}
		}
		return nil
	})
	return got
}

// interval is a second of 7,500 records.
func interval(at time.Duration, due, consumed bool) load.Snapshot {
	service, response := measure.NewHistogram(), measure.NewHistogram()
	service.RecordN(2*time.Millisecond, 5000)
	service.RecordN(6*time.Millisecond, 2500)
	response.RecordN(3*time.Millisecond, 5000)
	response.RecordN(7*time.Millisecond, 2500)
	iv := measure.Interval{
		Phase: "measurement", Start: at, End: at + time.Second, InFlight: 4, Set: measure.Set{Service: service},
		Counts: measure.Counts{Sent: 7501, Acked: 7500, Failed: 1, AckedBytes: 7500 << 10, Bytes: 7501 << 10},
	}
	if due {
		iv.Response = response
	}
	if consumed {
		iv.Counts, iv.Set = measure.Counts{Consumed: 7500, Bytes: 7500 << 10}, measure.Set{}
	}
	return load.Snapshot{At: at + time.Second, Phase: "measurement", Interval: iv}
}

func document() *report.Document {
	d := &report.Document{Stopped: load.ByTime, Trust: measure.Trust{OK: true}}
	d.Totals.InFlightMean = 3.5
	return d
}

// began is the start of the run.
var began = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// sendRows gives rows of four records to what observes a run, if it wants them; the last one failed.
func sendRows(o dropin.Observer) {
	if o.Rows == nil {
		return
	}
	o.Found(map[string]any{})
	const ms = time.Millisecond
	for i, r := range []trace.Row{
		{Sent: 2 * ms, Done: 5 * ms, Acked: 1},
		{Sent: 4 * ms, Done: 9 * ms, Acked: 1},
		{Sent: 3 * ms, Done: 4 * ms, Acked: 1},
		{Sent: 5 * ms, Done: 6 * ms, Class: load.Timeout},
	} {
		r.Event, r.Due, r.Requested, r.Consumed, r.Partition, r.Offset = uint64(i), time.Duration(i+1)*ms, -1, -1, -1, -1
		o.Rows(began, &r)
	}
}

// Every option is tested: it becomes a setting, changes the output, causes a
// warning or ends the program.
func TestEveryOption(t *testing.T) {
	items := filepath.Join(t.TempDir(), "items.csv")
	assert.OK(t, os.WriteFile(items, []byte("t/one,0,1,0/0\n/t/two,1,1,0/0\n"), 0o644))
	read, topics := []string{"--read", "--item-input-path=t"}, []string{"--item-type=path", "--load-op-limit-count=3"}
	for _, tt := range []struct {
		option, value string
		with          []string
		want          string // NAME=VALUE of a setting; "warns TEXT" on stderr; "refused TEXT"; "seen TEXT" in lines or files
	}{
		{"item-data-size", "10KB", nil, "size=10240"},
		{"item-data-size", "1KB-2KB,1", nil, "size=1024-2048"},
		{"item-data-size", "1KB-2KB,0.2", nil, "refused a bias of 0.2"},
		{"item-data-size", "many", nil, `refused "many" is not a size`},
		{"item-data-input-file", "lines.txt", nil, "payload=,file:lines.txt)"},
		{"item-data-input-seed", "ff", nil, "payload=,ff)"},
		{"item-data-input-layer-size", "2MB", nil, "payload=ring(2097152,"},
		{"item-data-input-layer-size", "junk", nil, `refused "junk" is not a size`},
		{"item-data-input-layer-size", "0", nil, "refused holds no record"},
		{"item-data-input-layer-cache", "2", nil, "warns does nothing"},
		{"item-data-input-layer-heap", "true", nil, "warns does nothing"},
		{"item-data-ranges-concat", "1", nil, "refused completely"},
		{"item-data-ranges-concat", "false", nil, "refused completely"},
		{"item-data-ranges-fixed", "0-1", nil, "refused completely"},
		{"item-data-ranges-random", "1", nil, "refused completely"},
		{"item-data-ranges-threshold", "1MB", nil, "refused completely"},
		{"item-data-verify", "true", read, "decode=true"},
		{"item-data-verify", "true", read, "check-values=ring(4194304,7a42d9c483244167)"},
		{"item-data-verify", "true", append(read, "--storage-driver-record-key-enabled", "--item-naming-prefix=p"), "check-values=ring(4194304,names(36,p),7a42d9c483244167)"},
		{"storage-driver-record-timeoutMillis", "80", append(read, "--item-data-verify"), "warns does nothing: the records are those"},
		{"item-data-verify", "true", nil, "warns has no effect when records are written"},
		{"item-input-file", items, []string{"--read"}, "count=2"},
		{"item-input-file", items + ".gone", []string{"--read"}, "refused no such file"},
		{"item-input-path", "/t", []string{"--read"}, "target=kafka://127.0.0.1:9092/t"},
		{"item-input-path", "t", []string{"--read"}, "until-end=true"},
		{"item-input-path", "t", []string{"--read", "--load-op-recycle"}, "until-end="},
		{"item-input-path", "t", []string{"--read", strictly}, "count=1"},
		{"item-naming-length", "3", topics, "seen \n- Load Step Id"},
		{"item-naming-length", "0", nil, "refused not from 1 to 64"},
		{"item-naming-prefix", "top", topics, "topic top"},
		{"item-naming-radix", "10", append(topics, "--item-naming-type=serial", "--item-naming-seed=8"), "topic 9 10 11"},
		{"item-naming-length", "5", []string{"--storage-driver-record-key-enabled"}, "key=number(36,${math:absInt64(int64:xorShift(this.last()) % 60466176)}%{"},
		{"item-naming-radix", "2", []string{"--storage-driver-record-key-enabled", "--item-naming-length=64"}, "key=number(2,${math:absInt64(int64:xorShift(this.last()) % 9223372036854775807)}%{"},
		{"item-naming-prefix", "x", []string{"--storage-driver-record-key-enabled"}, "key=,x)"},
		{"item-data-size", "1KB", []string{"--item-data-input-file=x"}, "size=1024"},
		{"item-data-input-seed", "ff", []string{"--item-data-input-file=x"}, "warns does nothing"},
		{"item-input-path", "t", []string{"--read", "--item-input-file=" + items}, "warns does nothing"},
		{"load-batch-size", "20", nil, "warns does nothing: records are sent one by one"},
		{"load-batch-size", "20", []string{"--storage-driver-limit-concurrency=0", "--load-op-limit-rate=5"}, "warns does nothing: records are sent when they are due"},
		{"load-batch-size", "20", []string{"--storage-driver-limit-concurrency=0", "--storage-driver-batch-size=500"}, "warns does nothing: --storage-driver-batch-size"},
		{"load-batch-size", "20", []string{"--item-type=path", "--load-op-type=list"}, "warns does nothing: a request is for one topic"},
		{"load-op-recycle", "true", topics, "warns does nothing"},
		{"storage-driver-batch-size", "700", nil, "warns does nothing"},
		{"storage-net-linger", "7", nil, "linger=7ms"},
		{"storage-net-linger", "7", nil, "silent"},
		{"storage-net-linger", "7", nil, "engine=client"},
		{"storage-net-linger", "7", []string{"--storage-driver-limit-concurrency=10"}, "concurrency=10"},
		{"storage-net-linger", "7", []string{"--output-metrics-trace-persist", "--storage-driver-record-key-enabled"}, "engine=client"},
		{"storage-net-linger", "0", nil, "engine="},
		{"storage-net-linger", "7", []string{"--storage-driver-limit-concurrency=0"}, "engine="},
		{"storage-net-linger", "7", []string{"--storage-driver-limit-concurrency=0"}, "warns does nothing: without a limit"},
		{"storage-net-linger", "7", []string{"--load-op-limit-rate=5"}, "warns does nothing: with a rate"},
		{"storage-driver-batch-size", "900", []string{"--storage-net-linger=7"}, "batch-size=900"},
		{"storage-driver-batch-size", "900", []string{"--storage-net-linger=7"}, "silent"},
		{"load-batch-size", "200", []string{"--storage-net-linger=7"}, "warns does nothing"},
		{"load-batch-size", "200", []string{"--storage-net-linger=7", strictly}, "batch-size=200"},
		{"load-batch-size", "200", []string{"--storage-net-linger=7", strictly}, "silent"},
		{"storage-driver-record-timeoutMillis", "0", read, "refused not a time above 0"},
		{"item-naming-seed", "98", append(topics, "--item-naming-type=serial"), "topic 2r 2s 2t"},
		{"item-naming-seed", "junk", topics, `refused "junk" is not a 64-bit integer`},
		{"item-naming-seed", "", topics, "topic "},
		{"item-naming-step", "5", append(topics, "--item-naming-type=serial", "--item-naming-seed=-5"), "topic 0 5 a"},
		{"item-naming-type", "serial", append(topics, "--item-naming-seed=-1"), "topic 0 1 2"},
		{"item-output-delay", "5s", nil, "warns does nothing: it belongs to a PipelineLoad"},
		{"item-output-file", "done.csv", topics, "file done.csv"},
		{"item-output-path", "/a/b", nil, "target=kafka://127.0.0.1:9092/ab"},
		{"item-output-path", "/a?x=1", nil, "refused --item-output-path: Topic name is invalid: 'a?x=1' contains"},
		{"item-input-path", "a?x=1", []string{"--read"}, "refused --item-input-path: Topic name is invalid"},
		{"storage-net-node-addrs", "a,b/c", nil, `refused "b/c:9092" is not HOST`},
		{"item-output-queue-limit", "5", nil, "warns does nothing: it belongs to a PipelineLoad"},
		{"item-type", "path", []string{"--load-op-limit-count=3"}, "topic "},
		{"item-type", "token", nil, "refused no tokens"},
		{"load-batch-size", "20", []string{"--storage-driver-limit-concurrency=0", "--item-data-size=1KB"}, "batch-events=20"},
		{"load-batch-size", "0", nil, "refused at least"},
		{"load-op-limit-count", "77", nil, "count=77"},
		{"load-op-limit-count", "77", nil, "count-at-most=true"},
		{"load-op-limit-count", "77", append(read, "--load-op-recycle"), "count-at-most=true"},
		{"load-op-limit-count", "77", read, "count-at-most=true"},
		{"load-op-limit-fail-count", "5", nil, "failures=5"},
		{"load-op-limit-fail-rate", "true", nil, "failure-rate=50%"},
		{"load-op-limit-rate", "1000.5", nil, "rate=1000.5/s"},
		{"load-op-limit-rate", "10", read, "refused as they arrive"},
		{"load-op-limit-recycle", "5", nil, "warns does nothing"},
		{"load-op-output-duplicates", "true", nil, "warns does nothing"},
		{"load-op-recycle", "true", append(read, "--load-op-limit-count=9"), "count=9"},
		{"load-op-recycle-mode", "true", append(read, "--load-op-limit-count=9"), "count=9"},
		{"load-op-recycle-content-update", "true", nil, "refused cannot be changed"},
		{"load-op-retry", "true", nil, "retry=1000"},
		{"load-op-shuffle", "true", nil, "warns does nothing"},
		{"load-op-timeoutMillis", "900", nil, "delivery-timeout=900ms"},
		{"load-op-timeoutMillis", "0", nil, "refused 0 is below 1"},
		{"load-op-type", "update", nil, "refused cannot be changed"},
		{"load-op-type", "list", nil, "refused records are not listed"},
		{"load-op-wait-finish", "false", nil, "drain=1ms"},
		{"load-op-wait-limit", "2m", nil, "drain=120000ms"},
		{"load-op-wait-limit", "0", nil, "drain=1ms"},
		{"load-op-wait-limit", "5", []string{"--load-op-wait-finish=false"}, "warns does nothing"},
		{"load-op-weight", "5", nil, "warns does nothing: it belongs to a WeightedLoad"},
		{"load-batch-size", "20", []string{"--storage-driver-limit-concurrency=0", "--load-op-limit-rate=5", "--storage-driver-batch-size=500", strictly}, "warns does nothing: --storage-driver-batch-size"},
		{"load-batch-size", "20", []string{"--storage-driver-limit-concurrency=0", "--load-op-limit-rate=5", strictly}, "batch-size=20"},
		{"load-batch-size", "20", []string{"--storage-driver-limit-concurrency=0", "--load-op-limit-rate=5", strictly}, "silent"},
		{"item-naming-length", "9", []string{"--storage-driver-record-key-enabled", "--item-naming-type=serial"}, "silent"},
		{"item-naming-radix", "9", []string{"--storage-driver-record-key-enabled", "--item-naming-type=asc"}, "silent"},
		{"item-naming-type", "desc", []string{"--storage-driver-record-key-enabled"}, "key=(this.last() + (-1)) % "},
		{"item-naming-type", "serial", []string{"--storage-driver-record-key-enabled"}, "silent"},
		{"item-naming-length", "9", []string{"--storage-driver-record-key-enabled"}, "silent"},
		{"item-naming-radix", "9", []string{"--storage-driver-record-key-enabled"}, "silent"},
		{"item-naming-type", "serial", []string{"--item-type=path", "--delete", "--item-input-path=t"}, "warns does nothing: topics have"},
		{"item-naming-prefix", "x", []string{"--item-type=path", "--create", "--item-input-file=" + items}, "warns does nothing: topics have"},
		{"item-input-path", "t", topics, "warns does nothing"},
		{"item-input-file", items, []string{"--item-type=path", "--load-op-type=list"}, "warns does nothing"},
		{"item-output-file", "x", []string{"--item-type=path", "--load-op-type=list"}, "silent"},
		{"item-data-input-layer-size", "2MB", []string{"--item-data-input-file=x"}, "payload=ring(2097152,"},
		{"storage-driver-record-headers", "a:b", []string{strictly}, "warns does nothing"},
		{"storage-driver-create-headers", "a:b", []string{strictly}, "warns does nothing"},
		{"output-metrics-average-table-header-period", "1", []string{strictly}, "warns does nothing"},
		{"run-id", "7", topics, "label=mongoose.run=7"},
		{"load-step-id", "mine", topics, "label=mongoose.step=mine"},
		{"run-comment", "a word", topics, "note=a word"},
		{"load-service-threads", "3", nil, "warns does nothing"},
		{"load-step-id", "mine", nil, "label=mongoose.step=mine"},
		{"load-step-id", ".", nil, "refused not a valid folder name"},
		{"load-step-id", "..", nil, "refused not a valid folder name"},
		{"load-step-id", "../mine", nil, "refused not a valid folder name"},
		{"load-step-idAutoGenerated", "true", nil, "warns does nothing"},
		{"load-step-limit-size", "1MB", nil, "bytes=1048576"},
		{"load-step-limit-time", "2h", nil, "for=7200000ms"},
		{"load-step-limit-time", "20ms", nil, "refused not a time"},
		{"load-step-node-addrs", "a,b", nil, "refused no nodes here"},
		{"load-step-node-port", "1", nil, "warns does nothing"},
		{"output-color", "false", nil, "seen CREATE|"},
		{"output-metrics-average-period", "5s", nil, "rows 3"},
		{"output-metrics-average-period", "0", nil, "rows 1"},
		{"output-metrics-average-persist", "false", nil, "nofile metrics.csv"},
		{"output-metrics-average-aggregation-period", "50", nil, "warns does nothing"},
		{"output-metrics-average-table-header-period", "1", nil, "seen MB/s] |  [us]    |   [us]    \n----------|------------|------|----------|----------|------------|------|-------|--------|-------|----------|-----------\n"},
		{"output-metrics-average-table-header-period", "0", nil, "refused 0 is below 1"},
		{"output-metrics-summary-persist", "false", nil, "nofile metrics.total.csv"},
		{"output-metrics-timing-persist", "true", nil, "warns does nothing"},
		{"output-metrics-trace-persist", "true", nil, "file op.trace.csv"},
		{"output-metrics-trace-persist", "true", read, "warns has no effect when records are read"},
		{"output-metrics-quantiles", "0.5,0.9", nil, "percentiles=50,90"},
		{"output-metrics-quantiles", "95", nil, "refused not from 0 to 1"},
		{"output-metrics-threshold", "0.9", []string{"--storage-driver-limit-concurrency=4"}, "file metrics.threshold.total.csv"},
		{"output-metrics-threshold", "0.9", []string{"--storage-driver-limit-concurrency=5"}, "nofile metrics.threshold.total.csv"},
		{"output-metrics-threshold", "0.9", []string{"--storage-driver-limit-concurrency=0"}, "warns does nothing"},
		{"output-metrics-threshold", "9", nil, "refused not from 0 to 1"},
		{"run-comment", "a word", nil, "note=a word"},
		{"run-id", "7", nil, "label=mongoose.run=7"},
		{"run-node", "true", nil, "refused no node here"},
		{"run-port", "0", nil, "said remote API at http://127.0.0.1:"},
		{"run-port", "70000", nil, "refused is not a port"},
		{"run-node", "False", nil, "silent"},
		{"run-scenario", "gone.js", nil, "refused --run-scenario: cannot read gone.js"},
		{"run-version", "false", nil, "warns does nothing"},
		{"run-version", "1", nil, "warns does nothing"},
		{"storage-auth-file", "f", nil, "warns does nothing: mongoose's driver never logged in"},
		{"storage-auth-secret", "f", nil, "warns does nothing: mongoose's driver never logged in"},
		{"storage-auth-token", "f", nil, "warns does nothing: mongoose's driver never logged in"},
		{"storage-auth-uid", "f", nil, "warns does nothing: mongoose's driver never logged in"},
		{"storage-driver-type", "dummy-mock", nil, "target=null://mongoose"},
		{"storage-driver-type", "s3", nil, "refused unknown driver"},
		{"storage-driver-limit-concurrency", "12", nil, "concurrency=12"},
		{"storage-driver-limit-concurrency", "12", []string{"--load-op-limit-rate=5"}, "max-in-flight=12"},
		{"storage-driver-limit-queue-input", "12", nil, "warns does nothing"},
		{"storage-driver-threads", "3", nil, "clients=3"},
		{"storage-driver-threads", "-2", nil, "refused -2 is below 0"},
		{"storage-driver-threads", "-2", topics, "warns has no effect when topics"},
		{"storage-driver-batch-size", "-4", []string{"--storage-driver-limit-concurrency=0"}, "refused -4 is below 1"},
		{"storage-driver-batch-size", "700", []string{"--storage-driver-limit-concurrency=0"}, "batch-size=700"},
		{"storage-driver-buffer-memory", "7000", []string{"--item-data-size=1KB"}, "buffer-memory=7000"},
		{"storage-driver-compression-type", "lz4", nil, "compression=lz4"},
		{"storage-driver-compression-type", "lz4", nil, "fresh=true"},
		{"storage-driver-compression-type", "lz4", []string{"--storage-driver-record-key-enabled=true"}, "fresh=true"},
		{"storage-driver-compression-type", "none", nil, "fresh=true"},
		{"storage-driver-create-headers", "{a:b}", nil, "header=a=b"},
		{"storage-driver-create-key-enabled", "true", []string{"--item-naming-type=serial"}, "key=number(36,${math:absInt64((this.last() + (1)) % "},
		{"storage-driver-read-timeoutMillis", "70", read, "idle-timeout=70ms"},
		{"storage-driver-record-headers", "a:b,c=d", nil, "header=a=b c=d"},
		{"storage-driver-record-headers", "a:${b}", nil, "refused expressions"},
		{"storage-driver-record-key-enabled", "true", nil, "fresh=true"},
		{"storage-driver-record-timeoutMillis", "80", read, "idle-timeout=80ms"},
		{"storage-driver-record-timeoutMillis", "80", nil, "delivery-timeout=80ms"},
		{"storage-driver-record-timeoutMillis", "80", nil, "request-timeout=80ms"},
		{"load-op-timeoutMillis", "900", nil, "request-timeout="},
		{"storage-driver-record-timeoutMillis", "80", nil, "silent"},
		{"storage-driver-record-timeoutMillis", "80", []string{"--load-op-timeoutMillis=900"}, "delivery-timeout=80ms"},
		{"storage-driver-record-timeoutMillis", "80", []string{"--load-op-timeoutMillis=70"}, "delivery-timeout=70ms"},
		{"storage-driver-record-timeoutMillis", "80", []string{strictly}, "delivery-timeout="},
		{"storage-driver-record-timeoutMillis", "80", []string{strictly}, "warns does nothing: mongoose's driver applies it to reading only"},
		{"storage-driver-record-timeoutMillis", "80", []string{"--noop"}, "warns has no effect when nothing is sent"},
		{"storage-driver-request-size", "2000000", nil, "max-request=2000000"},
		{"storage-driver-request-size", "1110", []string{"--item-data-size=1KB"}, "max-request=1110"}, // 61 + 21 + 1 + 2 + 1024 + 1
		{"storage-driver-request-size", "1109", []string{"--item-data-size=1KB"}, "refused less than the 1110 bytes"},
		{"storage-driver-request-size", "1110", []string{"--item-data-size=1KB", "--storage-driver-record-headers=a:b"}, "refused less than the 1114 bytes"},
		{"storage-driver-request-size", "1110", []string{"--item-data-size=1KB", "--storage-driver-record-key-enabled=true"}, "refused less than the"},
		{"storage-driver-buffer-memory", "1000", []string{"--item-data-size=1KB"}, "refused less than the 1110 bytes"},
		{"storage-namespace", "n", nil, "warns does nothing"},
		{"storage-net-linger", "7", []string{"--load-op-limit-rate=5", "--storage-driver-limit-concurrency=0"}, "linger=7ms"},
		{"storage-net-linger", "7", []string{"--load-op-limit-rate=5", "--storage-driver-limit-concurrency=0"}, "silent"},
		{"storage-net-node-addrs", "a, b:9093", nil, "target=kafka://a:9092,b:9093/"},
		{"storage-net-node-port", "19092", nil, "target=kafka://127.0.0.1:19092/"},
		{"storage-net-node-slice", "true", nil, "warns does nothing"},
		{"storage-net-rcvBuf", "65536", nil, "recv-buffer=65536"},
		{"storage-net-rcvBuf", "0", nil, "refused 0 is not a size"},
		{"storage-net-rcvBuf", "-1", topics, "topic "},
		{"storage-net-sndBuf", "-1", nil, "send-buffer="},
		{"storage-net-sndBuf", "-7", nil, "refused -7 is below -1"},
		{"storage-net-ssl", "true", nil, "tls=true"},
		{"item-input-file", items, []string{"--noop"}, "count=2"},
		{"item-input-path", "t", []string{"--noop"}, "count=1"},
		{"item-input-path", "t", []string{"--noop", "--load-op-recycle"}, "count="},
		{"item-input-file", items, []string{"--delete"}, "topic t"},
		{"storage-net-linger", "-9", []string{"--load-op-limit-rate=5"}, "refused -9 is below 0"},
	} {
		if testing.Short() && tested[tt.option] {
			continue // one case of each option
		}
		t.Run(tt.option+"="+filepath.Base(tt.value), func(t *testing.T) {
			args := append(slices.Clone(tt.with), "--"+tt.option+"="+tt.value)
			strict := slices.Contains(args, strictly)
			got := runTool(t, dropin.Program{Strict: strict}, slices.DeleteFunc(args, func(arg string) bool { return arg == strictly })...)
			kind, text, _ := strings.Cut(tt.want, " ")
			assert.Must(t, kind == "refused" || got.err == nil, "got %v", got.err)
			var ok bool
			switch kind {
			case "warns":
				ok = strings.Contains(got.errs, "--"+tt.option+" "+text)
			case "said":
				ok = strings.Contains(got.errs, text)
			case "refused":
				ok = got.err != nil && strings.Contains(got.err.Error(), text) && got.code == host.ExitFailed && len(got.settings) == 0
			case "silent":
				ok = !strings.Contains(got.errs, "--"+tt.option)
			case "seen":
				ok = strings.Contains(got.out, text)
			case "topic":
				ok = got.topics != nil && strings.HasPrefix(strings.Join(got.names, " "), text)
			case "rows":
				ok = strings.Count(got.out, "|CREATE|") == int(text[0]-'0')
			case "file":
				ok = got.files[text] != ""
			case "nofile":
				ok = got.files[text] == "" && got.files["config.yaml"] != ""
			default:
				name, value, _ := strings.Cut(tt.want, "=")
				ok = strings.Contains(got.settings[name], value) && (value != "" || got.settings[name] == "")
			}
			assert.True(t, ok,
				"want %s; got %v, exit %d, settings %v, stderr %q, stdout:\n%s", tt.want, got.err, got.code, got.settings, got.errs, got.out)
			tested[tt.option] = true
		})
	}
	for _, o := range options {
		assert.True(t, tested[o.name], "--%s is not tested", o.name)
	}
}

var tested = make(map[string]bool)

// strictly stands for --strict, which is not an option of mongoose.
const strictly = "strictly"

// Old names of options select their new ones.
func TestAliases(t *testing.T) {
	for name, a := range aliases {
		assert.True(t, a.to == "" || find(a.to) != nil, "--%s is --%s, which does not exist", name, a.to)
	}
	got := runTool(t, dropin.Program{}, "--test-step-limit-count=5", "--load-limit-concurrency=3", "--storage-driver-remote", "--create")
	if got.settings["count"] != "5" || got.settings["concurrency"] != "3" || strings.Count(got.errs, "\n") != 3 ||
		!strings.Contains(got.errs, "--test-step-limit-count is deprecated, it is --load-op-limit-count") {
		t.Errorf("got %v and %q", got.settings, got.errs)
	}
}

// Usage errors have mongoose's wording.
func TestUsage(t *testing.T) {
	const stamp = `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3} F {32}main {27}`
	for _, tt := range []struct {
		name, arg, want string
	}{
		{"no option", "count=5", `Invalid argument: "count=5"` + "\nThe list of all possible args:\n\t--item-data-size=<any>\n"},
		{"no such option", "--load-op-limit-counts=5", `Invalid configuration option: "load-op-limit-counts"` + "\nThe list of all possible args:\n"},
		{"no number", "--load-op-limit-count=5k", `Invalid configuration value type for the option "load-op-limit-count", expected: class java.lang.Long, actual: class java.lang.String` + "\n"},
		{"no switch", "--output-color=red", `Invalid configuration value type for the option "output-color", expected: class java.lang.Boolean`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := runTool(t, dropin.Program{}, tt.arg)
			_, text, _ := strings.Cut(got.out, " main ")
			if got.code != host.ExitFailed || got.err != nil || !matches(stamp, got.out) || !strings.HasPrefix(strings.TrimLeft(text, " "), tt.want) || len(got.settings) > 0 {
				t.Errorf("exit %d, %v, stdout:\n%s", got.code, got.err, got.out)
			}
		})
	}
	if got := runTool(t, dropin.Program{}, "--help"); got.code != 0 || !strings.Contains(got.out, "--load-op-limit-rate=<double> (0)") || !strings.Contains(got.out, "--strict ") {
		t.Errorf("help: exit %d:\n%s", got.code, got.out)
	}
	got := runTool(t, dropin.Program{Generation: "5"})
	assert.True(t, got.err != nil && strings.Contains(got.err.Error(), "4.2 and 4.3"), "another generation: %v", got.err)
}
