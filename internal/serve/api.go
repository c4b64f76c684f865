package serve

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"carronade/internal/advice"
	"carronade/internal/secret"
	"carronade/internal/serve/jobs"
	"carronade/protocol"
)

// MostCommands is how many commands run at once.
const MostCommands = 4

// The limits of requests.
const (
	longestBody    = 64 << 10    // bytes of a JSON body
	mostOutput     = 64 << 20    // bytes that a command prints
	commandLimit   = time.Minute // of a command that is run at once
	mostJobsListed = 1000        // jobs in one answer
	mostArgs       = 1000        // words of a command line
	longestArgs    = longestBody // bytes of a command line
)

// Jobs is the queue that the API shows; internal/serve/jobs has it.
type Jobs interface {
	Submit(ctx context.Context, r jobs.Request) (jobs.Job, int, error)
	Cancel(ctx context.Context, id int64) error
	Jobs(ctx context.Context, f jobs.Filter) ([]jobs.Job, error)
	Job(ctx context.Context, id int64) (jobs.Job, error)
	Output(ctx context.Context, id int64, follow bool, w io.Writer) error
}

// An API answers requests over HTTP. The caller authenticates them first: see User.
type API struct {
	Jobs  Jobs
	Kinds []protocol.Kind
	// Run runs a command that generates no load, under the rules of jobs.
	Run func(ctx context.Context, user string, args []string, stdout, stderr io.Writer) int
	// Check returns what is wrong with a command line, and the way out, in the words of the command line; "": nothing
	// that shows before it runs. nil: nothing is checked.
	Check func(args []string) (what, way string)
	// Loads reports whether a command line generates load, so that it must be a job.
	Loads func(args []string) bool
	// Rules are what jobs may do, for the list of jobs.
	Rules *Rules
	// Folder has the files that jobs may name.
	Folder  string
	Version string
	// User is whose request it is.
	User func(r *http.Request) string

	running chan struct{} // has an element for each command that runs; see Handler
	// Files that are being received count as files of the folder.
	files     sync.Mutex // of these
	receiving int
	reserved  int64 // bytes
}

//go:embed openapi.json
var openAPI []byte

// Handler returns the routes of the API, all below /api/v1/.
func (a *API) Handler() http.Handler {
	a.running = make(chan struct{}, MostCommands)
	removeParts(a.Folder)
	mux := http.NewServeMux()
	for pattern, handle := range a.routes() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			if err := handle(w, r); err != nil {
				answerError(w, err)
			}
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		refused := refusedRoute{header: w.Header()}
		mux.ServeHTTP(&refused, r)
		what := r.Method + " " + r.URL.Path
		if refused.status == http.StatusMethodNotAllowed {
			answerError(w, &problem{refused.status, "this path has no such method: " + what, "use " + w.Header().Get("Allow")})
			return
		}
		answerError(w, &problem{http.StatusNotFound, "no such path: " + what, "GET /api/v1/openapi.json describes all"})
	})
}

// refusedRoute keeps the status and the headers of an answer without its text.
type refusedRoute struct {
	header http.Header
	status int
}

func (f *refusedRoute) Header() http.Header         { return f.header }
func (f *refusedRoute) WriteHeader(status int)      { f.status = status }
func (f *refusedRoute) Write(p []byte) (int, error) { return len(p), nil }

type handler = func(w http.ResponseWriter, r *http.Request) error

func (a *API) routes() map[string]handler {
	return map[string]handler{
		"GET /api/v1/openapi.json":       a.describe,
		"GET /api/v1/status":             a.status,
		"GET /api/v1/jobs":               a.list,
		"POST /api/v1/jobs":              a.submit,
		"GET /api/v1/jobs/{id}":          a.job,
		"POST /api/v1/jobs/{id}/cancel":  a.cancel,
		"GET /api/v1/jobs/{id}/output":   a.output,
		"POST /api/v1/commands":          a.command,
		"GET /api/v1/reports":            a.reports,
		"GET /api/v1/reports/{id}":       a.report,
		"GET /api/v1/reports/{id}/page":  a.page,
		"GET /api/v1/files/{name...}":    a.inFolder(readFile),
		"PUT /api/v1/files/{name...}":    a.inFolder(a.writeFile),
		"DELETE /api/v1/files/{name...}": a.inFolder(a.removeFile),
	}
}

// A problem is an error with the status of its answer.
type problem struct {
	status int
	text   string
	hint   string
}

func (p *problem) Error() string { return p.text }

func answerError(w http.ResponseWriter, err error) {
	p := &problem{status: statusOf(err), text: err.Error(), hint: advice.Hint(err)}
	errors.As(err, &p)
	_ = answer(w, p.status, map[string]string{"error": p.text, "hint": p.hint})
}

// statusOf is the status of an error of the queue.
func statusOf(err error) int {
	switch {
	case errors.Is(err, jobs.ErrInvalid):
		return http.StatusBadRequest
	case errors.Is(err, jobs.ErrLimit):
		return http.StatusTooManyRequests
	case errors.Is(err, jobs.ErrClosed):
		return http.StatusServiceUnavailable
	case errors.Is(err, jobs.ErrFull):
		return http.StatusInsufficientStorage
	}
	return http.StatusInternalServerError
}

func answer(w http.ResponseWriter, status int, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(text, '\n')) //nolint:errcheck // the client is gone
	return nil
}

func (a *API) describe(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	w.Write(openAPI) //nolint:errcheck // the client is gone
	return nil
}

// A JobView is a job in answers.
type JobView struct {
	ID        int64      `json:"id"`
	System    string     `json:"system"`
	User      string     `json:"user"`
	Typed     string     `json:"typed"`
	Args      []string   `json:"args"`
	State     jobs.State `json:"state"`
	Submitted time.Time  `json:"submitted_at"`
	Started   *time.Time `json:"started_at"`
	Ended     *time.Time `json:"ended_at"`
	Exit      *int       `json:"exit"`
	Reason    string     `json:"reason"`
	Walls     string     `json:"walls"`
}

func (a *API) viewOf(j *jobs.Job) JobView {
	v := JobView{ID: j.ID, System: j.System, User: j.User, Typed: j.Typed, Args: j.Args, State: j.State, Submitted: j.Submitted, Reason: j.Reason, Walls: a.Rules.Walls(a.Kinds, j.Args)}
	if !j.Started.IsZero() {
		v.Started = &j.Started
	}
	if !j.Ended.IsZero() {
		v.Ended = &j.Ended
		if !j.Started.IsZero() && j.State != jobs.Interrupted {
			v.Exit = &j.Exit
		}
	}
	return v
}

func (a *API) status(w http.ResponseWriter, r *http.Request) error {
	found, err := a.Jobs.Jobs(r.Context(), jobs.Filter{States: []jobs.State{jobs.Queued, jobs.Running}})
	if err != nil {
		return err
	}
	running := []JobView{}
	queued := 0
	for i := range found {
		if found[i].State == jobs.Running {
			running = append(running, a.viewOf(&found[i]))
		} else {
			queued++
		}
	}
	return answer(w, http.StatusOK, map[string]any{"version": a.Version, "user": a.User(r), "running": running, "queued": queued})
}

func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	f := jobs.Filter{System: q.Get("system"), User: q.Get("user"), Newest: 100}
	if text := q.Get("n"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostJobsListed {
			return &problem{http.StatusBadRequest, "n must be between 1 and " + strconv.Itoa(mostJobsListed), ""}
		}
		f.Newest = n
	}
	for _, s := range q["state"] {
		switch state := jobs.State(s); state {
		case jobs.Queued, jobs.Running, jobs.Done, jobs.Failed, jobs.Cancelled, jobs.Interrupted:
			f.States = append(f.States, state)
		default:
			return &problem{http.StatusBadRequest, fmt.Sprintf("%q is not a state of a job", s), "one of queued, running, done, failed, cancelled, interrupted"}
		}
	}
	found, err := a.Jobs.Jobs(r.Context(), f)
	if err != nil {
		return err
	}
	views := make([]JobView, 0, len(found))
	for i := range slices.Backward(found) { // the newest first
		views = append(views, a.viewOf(&found[i]))
	}
	return answer(w, http.StatusOK, map[string]any{"jobs": views})
}

// readArgs reads the command line in a JSON body, and checks it. Unknown names are errors.
func readArgs(w http.ResponseWriter, r *http.Request) ([]string, error) {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/json" {
		return nil, &problem{http.StatusUnsupportedMediaType, "the body must be JSON", "Content-Type: application/json"}
	}
	var body struct {
		Args []string `json:"args"`
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, longestBody))
	d.DisallowUnknownFields()
	err := d.Decode(&body)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something comes after it")
		}
	}
	if err != nil {
		return nil, &problem{http.StatusBadRequest, "the body is not what this path takes: " + err.Error(), "GET /api/v1/openapi.json describes it"}
	}
	return body.Args, checkArgs(body.Args)
}

// checkArgs checks a command line that came over the network. Whether it may run is decided in
// its process.
func checkArgs(args []string) error {
	size := 0
	for _, arg := range args {
		size += len(arg)
		if strings.ContainsRune(arg, 0) {
			return &problem{http.StatusBadRequest, "an argument contains a zero byte", ""}
		}
	}
	var m secret.Mask
	if !slices.Equal(m.Args(args), args) {
		return &problem{http.StatusBadRequest, "the command line contains a secret, which others could read in the list of jobs", "put it into a file, and give file:PATH"}
	}
	if len(args) == 0 || len(args) > mostArgs || size > longestArgs {
		return &problem{http.StatusBadRequest, fmt.Sprintf("args must be a command line of carronade of 1 to %d words", mostArgs), `such as {"args": ["run", "kafka://127.0.0.1:9092/t", "--for", "30s"]}`}
	}
	return nil
}

func (a *API) submit(w http.ResponseWriter, r *http.Request) error {
	args, err := readArgs(w, r)
	if err != nil {
		return err
	}
	if a.Check != nil {
		if what, way := a.Check(args); what != "" {
			return &problem{http.StatusBadRequest, what, way}
		}
	}
	if !a.Loads(args) {
		return &problem{http.StatusBadRequest, "this command generates no load, so it is not a job", "POST /api/v1/commands runs it at once"}
	}
	job, ahead, err := a.Jobs.Submit(r.Context(), jobs.Request{
		System: SystemOf(a.Kinds, args), User: a.User(r), Typed: strings.Join(args, " "), Args: args,
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/api/v1/jobs/"+strconv.FormatInt(job.ID, 10))
	return answer(w, http.StatusCreated, map[string]any{"job": a.viewOf(&job), "ahead": ahead})
}

// find returns the job that a request names.
func (a *API) find(r *http.Request) (jobs.Job, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return jobs.Job{}, &problem{http.StatusNotFound, "a job has a number", ""}
	}
	job, err := a.Jobs.Job(r.Context(), id)
	if errors.Is(err, jobs.ErrNoJob) {
		return job, &problem{http.StatusNotFound, fmt.Sprintf("job %d does not exist", id), "GET /api/v1/jobs lists them"}
	}
	return job, err
}

func (a *API) job(w http.ResponseWriter, r *http.Request) error {
	job, err := a.find(r)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, a.viewOf(&job))
}

func (a *API) cancel(w http.ResponseWriter, r *http.Request) error {
	job, err := a.find(r)
	if err != nil {
		return err
	}
	if job.User != a.User(r) {
		return &problem{http.StatusForbidden, fmt.Sprintf("job %d belongs to %s", job.ID, job.User), "only its user can cancel it"}
	}
	if err := a.Jobs.Cancel(r.Context(), job.ID); err != nil {
		return &problem{http.StatusConflict, err.Error(), ""}
	}
	if job, err = a.find(r); err != nil {
		return err
	}
	return answer(w, http.StatusAccepted, a.viewOf(&job))
}

// output sends what a job printed; with follow=1 until it ends.
func (a *API) output(w http.ResponseWriter, r *http.Request) error {
	job, err := a.find(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no")
	out := &flushing{w: w, c: http.NewResponseController(w)}
	out.flush()                                                                 // the headers
	a.Jobs.Output(r.Context(), job.ID, r.URL.Query().Get("follow") == "1", out) //nolint:errcheck // the client is gone, or the answer has begun
	return nil
}

// flushing sends each write at once. A client that does not read for a while is cut off.
type flushing struct {
	w http.ResponseWriter
	c *http.ResponseController
}

// slowest is how long a client may take to read one piece.
const slowest = 10 * time.Second

func (f *flushing) Write(p []byte) (int, error) {
	f.c.SetWriteDeadline(time.Now().Add(slowest)) //nolint:errcheck // not all writers have one
	n, err := f.w.Write(p)
	if err == nil {
		err = f.c.Flush()
	}
	return n, err
}

func (f *flushing) flush() {
	f.c.SetWriteDeadline(time.Now().Add(slowest)) //nolint:errcheck // not all writers have one
	f.c.Flush()
}

// command runs a command that generates no load.
func (a *API) command(w http.ResponseWriter, r *http.Request) error {
	args, err := readArgs(w, r)
	if err != nil {
		return err
	}
	if a.Loads(args) {
		return &problem{http.StatusBadRequest, "this command generates load, so it must wait for the system", "POST /api/v1/jobs"}
	}
	stdout, stderr, code, err := a.run(r, args)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"exit": code, "stdout": string(stdout), "stderr": string(stderr)})
}

// run runs a command for a request.
func (a *API) run(r *http.Request, args []string) (stdout, stderr []byte, code int, err error) {
	select {
	case a.running <- struct{}{}:
	case <-r.Context().Done():
		return nil, nil, 0, r.Context().Err()
	}
	defer func() { <-a.running }()
	ctx, cancel := context.WithTimeout(r.Context(), commandLimit)
	defer cancel()
	out, errs := &limited{most: mostOutput}, &limited{most: 1 << 20}
	code = a.Run(ctx, a.User(r), args, out, errs)
	switch {
	case ctx.Err() != nil:
		return nil, nil, 0, &problem{http.StatusGatewayTimeout, "the command took too long", "ask for less"}
	case out.cut:
		return nil, nil, 0, &problem{http.StatusInsufficientStorage, "the command printed too much", "ask for less"}
	}
	return out.Bytes(), errs.Bytes(), code, nil
}

// limited keeps at most this many bytes.
type limited struct {
	bytes.Buffer
	most int
	cut  bool
}

func (l *limited) Write(p []byte) (int, error) {
	if room := l.most - l.Len(); room < len(p) {
		l.cut = true
		l.Buffer.Write(p[:room])
		return len(p), nil
	}
	return l.Buffer.Write(p)
}

// show runs a command and sends its output.
func (a *API) show(w http.ResponseWriter, r *http.Request, kind string, args ...string) error {
	stdout, stderr, code, err := a.run(r, args)
	switch {
	case err != nil:
		return err
	case code != 0:
		text, hint, _ := strings.Cut(strings.TrimSpace(string(stderr)), "\nhint: ")
		status := http.StatusBadRequest
		if r.PathValue("id") != "" && (strings.Contains(text, "no report") || strings.Contains(text, "no such report")) {
			status = http.StatusNotFound
		}
		return &problem{status, strings.TrimPrefix(text, "error: "), hint}
	}
	w.Header().Set("Content-Type", kind)
	w.Write(stdout) //nolint:errcheck // the client is gone
	return nil
}

func (a *API) reports(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	args := []string{"report", "list", "--json"}
	if n := q.Get("n"); n != "" {
		args = append(args, "--last="+n)
	}
	if c := q.Get("columns"); c != "" {
		args = append(args, "--columns="+c)
	}
	args = append(args, "--")
	return a.show(w, r, "application/json", append(args, q["filter"]...)...)
}

func (a *API) report(w http.ResponseWriter, r *http.Request) error {
	return a.show(w, r, "application/json", "report", "export", "--as=json", "--", r.PathValue("id"))
}

// page sends the report as a page. It has its own style and script, which its Content-Security-Policy
// names by their hashes; as a document of its own origin it could use this API, so it has none.
func (a *API) page(w http.ResponseWriter, r *http.Request) error {
	args := []string{"report", "export", "--as=html", "--", r.PathValue("id")}
	w.Header().Set("Content-Security-Policy", "sandbox allow-scripts")
	return a.show(w, r, "text/html; charset=utf-8", append(args, r.URL.Query()["with"]...)...)
}
