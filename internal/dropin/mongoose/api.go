package mongoose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/live"
	"carronade/internal/report"
	"carronade/internal/scenario"
	"carronade/internal/workload"
)

// runFunc is the type of Program.Run.
type runFunc = func(ctx context.Context, w *workload.Document, observer dropin.Observer) (*report.Document, error)

// mostBody limits a request of the remote API, in bytes: a scenario, options, and what is around
// them.
const mostBody = 2 << 20

// requestTime limits the time of a request and of its answer.
const requestTime = 30 * time.Second

// An api is the remote API: one run at a time, its metrics and the files of steps. It is safe for
// concurrent use.
type api struct {
	program  *dropin.Program
	defaults *values
	files    string // folder of the files that a run of the API may name

	mu       sync.Mutex
	id       int64              // of the active run, 0 for none
	cancel   context.CancelFunc // of it
	others   string             // a run of another machine in which this node takes part
	last     int64              // the last id
	closed   bool               // no run may begin
	running  sync.WaitGroup     // the active run of the API; its Add is under mu, before closed
	measured []*measuredStep    // of the newest run, in the order of their beginnings
}

type apiKey struct{}

// apiOf is the remote API of a context; nil without one.
func apiOf(ctx context.Context) *api {
	a, _ := ctx.Value(apiKey{}).(*api)
	return a
}

func newAPI(p *dropin.Program, v *values) *api {
	a := &api{program: p, defaults: v}
	if root, err := logRoot(false); err == nil {
		a.files = filepath.Join(filepath.Dir(filepath.Dir(root)), "files")
	}
	return a
}

// serve serves the API at an address, or, without one, at the port of --run-port on loopback.
// Requests name this machine by one of names, its host name or an address. The returned function
// ends it.
func (a *api) serve(ctx context.Context, addr string, names []string) (string, func(), error) {
	addr, err := listenOf(addr, a.defaults, "run-port")
	if err != nil {
		return "", nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err
		}
		return "", nil, fmt.Errorf("the remote API cannot listen on %s: %w (--run-port and --api-listen give another address)", addr, err)
	}
	server := &http.Server{
		Handler:           guarded(a.handler(), addr, names),
		ReadHeaderTimeout: requestTime, ReadTimeout: requestTime, WriteTimeout: requestTime, MaxHeaderBytes: 16 << 10,
	}
	go server.Serve(l) //nolint:errcheck // it ends by Close
	return l.Addr().String(), func() { server.Close() }, nil
}

// guarded refuses requests of other web pages: also those that name this machine otherwise than it
// is named.
func guarded(next http.Handler, addr string, names []string) http.Handler {
	own := slices.Clone(names)
	if host, _, err := net.SplitHostPort(addr); err == nil {
		own = append(own, host)
	}
	if name, err := os.Hostname(); err == nil {
		own = append(own, name)
	}
	g := live.NewGuard(func(string) (string, bool) { return "", false }, own...)
	g.Refuse = func(w http.ResponseWriter, _ *http.Request, text string, status int) {
		if status == http.StatusMisdirectedRequest {
			text = "this machine does not have that name: use its address or its host name, or start the program with --api-name=HOST"
		}
		http.Error(w, text, status)
	}
	return g.Protect(next)
}

// handler answers the requests of the API.
func (a *api) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /config", a.getConfig)
	mux.HandleFunc("GET /config/schema", a.getSchema)
	mux.HandleFunc("POST /run", a.postRun)
	mux.HandleFunc("HEAD /run", a.headRun)
	mux.HandleFunc("GET /run", a.getRun)
	mux.HandleFunc("DELETE /run", a.deleteRun)
	mux.HandleFunc("GET /logs", a.listLogs)
	mux.HandleFunc("GET /logs/{step}/{name}", a.getLog)
	mux.HandleFunc("DELETE /logs/{step}/{name}", a.deleteLog)
	mux.HandleFunc("GET /metrics", a.getMetrics)
	return mux
}

// busyError says that the API or the node has a run.
type busyError struct{ what string }

func (e *busyError) Error() string { return "busy with " + e.what }

// errEnding is the error of a run that would begin while the program ends.
var errEnding = errors.New("the program ends")

// mostID is the largest id of a run that is taken: JSON has it exactly, and larger ones follow.
const mostID = 1 << 53

// claim takes part in a run of another machine, if there is none here.
func (a *api) claim(run string) (func(), error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.id != 0 {
		return nil, &busyError{fmt.Sprintf("run %d of its remote API", a.id)}
	}
	a.others = run
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.others = ""
	}, nil
}

// begin makes a run the active one, until over is called, and returns its id. The wanted one is its
// id if it is new: above those of the runs before.
func (a *api) begin(wanted int64, cancel context.CancelFunc) (int64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return 0, errEnding
	case a.id != 0:
		return 0, &busyError{fmt.Sprintf("run %d", a.id)}
	case a.others != "":
		return 0, &busyError{"run " + a.others + " of another machine"}
	}
	if wanted <= a.last || wanted > mostID {
		wanted = max(time.Now().UnixMilli(), a.last+1)
	}
	a.running.Add(1)
	a.id, a.last, a.cancel, a.measured = wanted, max(a.last, wanted), cancel, nil
	return a.id, nil
}

// began makes the run of the command line the active one, to the end of the program.
func (a *api) began(v *values, cancel context.CancelFunc) {
	if _, err := a.begin(v.number("run-id"), cancel); err == nil { // it is the first
		a.running.Done() // it ends before end is called
	}
}

// over ends the active run.
func (a *api) over() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.id, a.cancel = 0, nil
	a.running.Done()
}

// end stops the active run and waits for it. A request that comes later starts none.
func (a *api) end() {
	a.mu.Lock()
	a.closed = true
	if a.cancel != nil {
		a.cancel()
	}
	a.mu.Unlock()
	a.running.Wait()
}

// active is the id of the active run, 0 for none.
func (a *api) active() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.id
}

// etag sets the id of a run, with the header's name as scripts look for it.
func etag(w http.ResponseWriter, id int64) { w.Header()["ETag"] = []string{strconv.FormatInt(id, 10)} }

// wanted is the run that If-Match names. Without one the request is answered.
func wanted(w http.ResponseWriter, r *http.Request) (int64, bool) {
	id, err := strconv.ParseInt(strings.Trim(r.Header.Get("If-Match"), `"`), 10, 64)
	if err != nil {
		http.Error(w, "If-Match has to be the id of a run, which ETag was when it began", http.StatusBadRequest)
		return 0, false
	}
	return id, true
}

func (a *api) headRun(w http.ResponseWriter, _ *http.Request) {
	id := a.active()
	if id == 0 {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	etag(w, id)
}

func (a *api) getRun(w http.ResponseWriter, r *http.Request) {
	id, ok := wanted(w, r)
	if !ok {
		return
	}
	if id == 0 || a.active() != id {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	etag(w, id)
}

func (a *api) deleteRun(w http.ResponseWriter, r *http.Request) {
	id, ok := wanted(w, r)
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if id == 0 || a.id != id {
		http.Error(w, fmt.Sprintf("run %d is not active", id), http.StatusNotFound)
		return
	}
	a.cancel()
	etag(w, id)
}

// postRun starts a run with the parts defaults and scenario.
func (a *api) postRun(w http.ResponseWriter, r *http.Request) {
	defaults, script, err := parts(w, r)
	if err != nil {
		status := http.StatusBadRequest
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			err, status = fmt.Errorf("a request has at most %d MiB", mostBody>>20), http.StatusRequestEntityTooLarge
		}
		http.Error(w, err.Error(), status)
		return
	}
	v := a.defaults.clone()
	if err := v.read(defaults); err != nil {
		http.Error(w, "defaults: "+err.Error(), http.StatusBadRequest)
		return
	}
	v.given["run-node"], v.confined = "false", a.files
	delete(v.given, "run-scenario")
	now := time.Now()
	if v.text("load-step-id") == "" && len(script) == 0 {
		v.given["load-step-id"] = "linear_" + now.UTC().Format(stamp)
	}
	if _, err := newStep(v.clone(), a.program.Strict, a.program.Generation, now, func(string, ...any) {}); err != nil && len(script) == 0 {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	id, err := a.begin(v.number("run-id"), cancel)
	if err != nil {
		cancel()
		status := http.StatusConflict
		if errors.Is(err, errEnding) {
			status = http.StatusServiceUnavailable
		}
		http.Error(w, err.Error(), status)
		return
	}
	if v.has("run-id") {
		v.given["run-id"] = strconv.FormatInt(id, 10)
	}
	own, closeLogs, err := a.logged(v, now, script)
	if err != nil {
		cancel()
		a.over()
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	go func() {
		defer a.over()
		defer cancel()
		defer closeLogs()
		if err := a.run(context.WithValue(ctx, apiKey{}, a), own, v, script); err != nil {
			warner(own)("run %d: %v", id, err)
		}
	}()
	etag(w, id)
	w.WriteHeader(http.StatusAccepted)
}

// run runs a step or a scenario to its end.
func (a *api) run(ctx context.Context, p *dropin.Program, v *values, script []byte) error {
	if len(script) == 0 {
		_, err := runStep(ctx, p, v)
		return err
	}
	dir, err := os.MkdirTemp("", "mongoose-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	v.given["run-scenario"] = filepath.Join(dir, "scenario.js")
	if err := os.WriteFile(v.given["run-scenario"], script, 0o600); err != nil {
		return err
	}
	_, flags, err := splitScenario(nil)
	if err == nil {
		_, err = runScenario(ctx, p, v, flags)
	}
	return err
}

// parts reads the parts of a request.
func parts(w http.ResponseWriter, r *http.Request) (defaults, script []byte, err error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		if body, readErr := io.ReadAll(io.LimitReader(r.Body, 1)); readErr == nil && len(body) == 0 {
			return nil, nil, nil // the defaults alone
		}
		return nil, nil, errors.New("a run has the parts defaults and scenario, as multipart/form-data")
	}
	body := multipart.NewReader(http.MaxBytesReader(w, r.Body, mostBody), params["boundary"])
	for {
		part, err := body.NextPart()
		if errors.Is(err, io.EOF) {
			return defaults, script, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the request is damaged: %w", err)
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return nil, nil, fmt.Errorf("the request is damaged: %w", err)
		}
		switch name := part.FormName(); name {
		case "defaults":
			defaults = data
		case "scenario":
			if script = bytes.TrimSpace(data); len(script) > scenario.MostSource {
				return nil, nil, fmt.Errorf("a scenario has at most %d MiB", scenario.MostSource>>20)
			}
		default:
			return nil, nil, fmt.Errorf("a run has no part %q: only defaults and scenario", name)
		}
	}
}
