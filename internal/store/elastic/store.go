package elastic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"carronade/internal/host"
	"carronade/internal/place"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/measure"
	"carronade/protocol"
	"carronade/units"
)

// A Store keeps reports in a cluster. It implements store.Store.
type Store struct {
	*client
	mu       sync.Mutex
	prepared bool
}

var _ store.Store = (*Store)(nil)

// Open opens the store at an address. It queries the cluster's
// version, so that an unavailable or refusing one is noticed now. An error is a
// *protocol.Error.
func Open(ctx context.Context, address *place.Address) (*Store, error) {
	c, err := newClient(address)
	if err != nil {
		return nil, err
	}
	s := &Store{client: c}
	var who struct {
		Version struct {
			Number       string `json:"number"`
			Distribution string `json:"distribution"`
		} `json:"version"`
	}
	err = s.do(ctx, http.MethodGet, "/", nil, "", &who)
	if err == nil && who.Version.Number == "" {
		err = errors.New("the server there is neither Elasticsearch nor OpenSearch")
	}
	if err == nil && who.Version.Distribution == "" && before7(who.Version.Number) {
		err = fmt.Errorf("%w: it is Elasticsearch %s", store.ErrTooOld, who.Version.Number)
	}
	if err != nil && status(err) != http.StatusForbidden { // not every user may ask
		return nil, s.fail("open the store", err)
	}
	return s, nil
}

// before7 reports whether a version of Elasticsearch has mappings with types.
func before7(version string) bool {
	major, err := strconv.Atoi(version[:max(0, strings.IndexByte(version, '.'))])
	return err == nil && major < 7
}

// OpenExisting is Open for callers that only read, or delete: if no report was
// stored yet, the error is a store.ErrAbsent. A user without permission to
// query the index gets no such error.
func OpenExisting(ctx context.Context, address *place.Address) (*Store, error) {
	s, err := Open(ctx, address)
	if err != nil {
		return nil, err
	}
	if err := s.do(ctx, http.MethodHead, "/"+s.reports(), nil, "", nil); status(err) == http.StatusNotFound {
		s.Close()
		return nil, s.fail("open the store", store.ErrAbsent)
	}
	return s, nil
}

// Place implements store.Store.
func (s *Store) Place() string { return s.place }

// Close implements store.Store.
func (s *Store) Close() error {
	s.http.CloseIdleConnections()
	return nil
}

// ready prepares the cluster before the first change.
func (s *Store) ready(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prepared {
		return nil
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	s.prepared = true
	return nil
}

// reportDocOf makes a document of a report's head.
func reportDocOf(d *report.Document) (*reportDoc, error) {
	head, err := d.Head()
	if err != nil {
		return nil, err
	}
	row := store.RowOf(d)
	bin, err := row.MarshalBinary()
	if err != nil {
		return nil, err
	}
	doc := &reportDoc{
		Schema: schemaVersion, At: d.StartedAt.UTC().Format(time.RFC3339Nano), StartedNS: d.StartedAt.UnixNano(), KeptNS: time.Now().UnixNano(),
		ID: d.ID, Hash: d.Hash, Target: d.Target, Op: d.Op, Measured: make(map[string]float64),
		Head: string(head), Digest: bin, Version: store.RowVersion,
	}
	for _, f := range row.Fields {
		if f.Value.Kind == store.KindText {
			doc.Equal = append(doc.Equal, f.Name+"="+f.Value.Text)
		}
	}
	for _, k := range store.Fields() {
		if v, ok := row.Num(k.Name); ok && measured(k) {
			doc.Measured[k.Name] = v
		}
	}
	return doc, nil
}

// measured reports whether a known field is a number that a dashboard can draw.
func measured(k store.KnownField) bool {
	switch k.Kind {
	case store.KindText, store.KindTime, store.KindBool:
		return false
	}
	return !strings.Contains(k.Name, ".")
}

// p99 is the 99th percentile of a time; nil if it does not exist.
func p99(s *measure.Summary) *float64 {
	v, ok := s.At(99)
	if !ok {
		return nil
	}
	us := float64(v.D) / float64(time.Microsecond)
	return &us
}

// intervalID is the document id of a report's n-th stored interval.
func intervalID(id string, n int) string { return fmt.Sprintf("%s-%06d", id, n) }

// intervalDocOf makes a document of an encoded interval.
func intervalDocOf(id string, started time.Time, n int, e *report.Encoded) (*intervalDoc, error) {
	var iv report.Interval
	if err := json.Unmarshal(e.JSON, &iv); err != nil {
		return nil, err
	}
	doc := &intervalDoc{
		Schema: schemaVersion, At: started.Add(units.Seconds(iv.EndS)).UTC().Format(time.RFC3339Nano),
		Report: id, N: n, Phase: iv.Phase, StartS: iv.StartS, EndS: iv.EndS, Sum: fmt.Sprintf("%x", e.Sum),
		Acked: iv.Acked, Failed: iv.Failed, Unknown: iv.Unknown, Sent: iv.Sent, Consumed: iv.Consumed,
		Unread: iv.Unread, WithinS: iv.WithinS, Arrived: iv.Arrived,
		EventsPerS: iv.EventsPerS, InFlight: iv.InFlight, JSON: string(e.JSON),
	}
	doc.ResponseP99, doc.ServiceP99, doc.EndToEndP99 = p99(iv.Response), p99(iv.Service), p99(iv.EndToEnd)
	return doc, nil
}

// Put implements store.Store.
func (s *Store) Put(ctx context.Context, d *report.Document) error {
	return s.fail("keep report "+d.ID, s.put(ctx, d))
}

func (s *Store) put(ctx context.Context, d *report.Document) error {
	if err := d.Check(); err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	doc, err := reportDocOf(d)
	if err != nil {
		return err
	}
	keep := action{verb: "create", index: s.reports(), id: d.ID, doc: doc}
	there, err := s.head(ctx, d.ID)
	switch {
	case errors.Is(err, store.ErrMissing):
		err = s.putIntervals(ctx, d)
	case err != nil:
		return err
	case there.Owner == "" && there.Hash == d.Hash:
		return nil
	case store.Remainder([]byte(there.Head), d):
		keep.verb, doc.KeptNS = "index", there.KeptNS
		if keep.ifAt, err = s.claim(ctx, there); err == nil {
			err = s.dropIntervals(ctx, d.ID, nil)
		}
		if err == nil {
			err = s.putIntervals(ctx, d)
		}
	case there.Owner != "" && alive(there):
		return store.ErrRunning
	default:
		return store.ErrExists
	}
	if err == nil {
		err = s.bulk(ctx, true, keep)
	}
	if status(err) == http.StatusConflict {
		return store.ErrExists // another process has stored it
	}
	return err
}

// claim makes this process the owner of a report whose intervals it will write
// again, so that no other process does so at the same time. It returns the
// version of the report after that; a conflict means that another process was
// first.
func (s *Store) claim(ctx context.Context, k *storedReport) (*version, error) {
	owner, err := json.Marshal(host.Self())
	if err != nil {
		return nil, err
	}
	mine := k.reportDoc
	mine.Hash, mine.Owner, mine.BeatMS = "", string(owner), time.Now().UnixMilli()
	if err := s.bulk(ctx, true, action{verb: "index", index: s.reports(), id: k.ID, doc: &mine, ifAt: &k.version}); err != nil {
		return nil, err
	}
	now, err := s.head(ctx, k.ID)
	if err != nil {
		return nil, err
	}
	if now.Owner != mine.Owner || now.BeatMS != mine.BeatMS {
		return nil, &statusError{status: http.StatusConflict, reason: "another process changed the report"}
	}
	return &now.version, nil
}

// putIntervals writes all of a report's intervals, in place of those that a
// search finds.
func (s *Store) putIntervals(ctx context.Context, d *report.Document) error {
	if err := s.dropFound(ctx, d.ID, nil); err != nil {
		return err
	}
	var actions []action
	for i := range d.Intervals {
		e, err := d.Intervals[i].Encode()
		if err != nil {
			return err
		}
		doc, err := intervalDocOf(d.ID, d.StartedAt, i, &e)
		if err != nil {
			return err
		}
		actions = append(actions, action{verb: "index", index: s.intervals(), id: intervalID(d.ID, i), doc: doc})
	}
	return s.bulk(ctx, true, actions...)
}

// dropIntervals deletes a report's intervals except those in keep, by their
// documents' ids, including ones that were just written.
func (s *Store) dropIntervals(ctx context.Context, id string, keep map[string]bool) error {
	if err := s.do(ctx, http.MethodPost, "/"+s.intervals()+"/_refresh?ignore_unavailable=true", nil, "", nil); err != nil && status(err) != http.StatusNotFound {
		return err
	}
	return s.dropFound(ctx, id, keep)
}

// dropFound deletes the intervals that a search finds, which excludes those
// written since the last refresh.
func (s *Store) dropFound(ctx context.Context, id string, keep map[string]bool) error {
	var actions []action
	err := s.eachInterval(ctx, id, []string{"n"}, func(h *hit) (bool, error) {
		if !keep[h.ID] {
			actions = append(actions, action{verb: "delete", index: s.intervals(), id: h.ID})
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	return s.bulk(ctx, true, actions...)
}

// Delete implements store.Store. If one of the reports is missing or running, none
// is deleted. Intervals go first, so that a failure leaves no intervals without a
// report: those could not be deleted any more.
func (s *Store) Delete(ctx context.Context, ids ...string) error {
	var actions []action
	for _, id := range ids {
		there, err := s.head(ctx, id)
		if err == nil && there.Owner != "" && alive(there) {
			err = store.ErrRunning
		}
		if err != nil {
			return s.fail("delete report "+id, err)
		}
		actions = append(actions, action{verb: "delete", index: s.reports(), id: id})
	}
	var err error
	for _, id := range ids {
		if err == nil {
			err = s.dropIntervals(ctx, id, nil)
		}
	}
	if err == nil {
		err = s.bulk(ctx, true, actions...)
	}
	return s.fail("delete reports", err)
}

// hints say what to do about an error.
var hints = []struct {
	is   error
	hint string
}{
	{store.ErrAbsent, "check the prefix at the end of the address; the first run, or report push, makes the store"},
	{store.ErrMissing, "carronade report list shows what is there"},
	{store.ErrExists, "a repeated run has its own id; the file may have been changed"},
	{store.ErrRunning, "wait for its end, or stop it"},
	{store.ErrForeign, "give another prefix in the store's address; these indices are left as they are"},
	{store.ErrTooOld, "reports need Elasticsearch 7.0 or later, or OpenSearch; give such a store, or a file: --store reports.db"},
	{store.ErrNewer, "use the newer carronade, or give another prefix in the store's address"},
	{store.ErrReadOnly, "check why its indices are read-only (a full disk is one cause), or give another store"},
}

// fail makes an error for users.
func (s *Store) fail(doing string, err error) error {
	if err == nil {
		return nil
	}
	var done *protocol.Error
	if errors.As(err, &done) || errors.Is(err, context.Canceled) {
		return err
	}
	out := &protocol.Error{Doing: doing + " in " + s.place, Err: err, Hint: "check that the cluster is up: curl " + s.base + "/_cluster/health"}
	var r *statusError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		out.Err = fmt.Errorf("it did not answer within %v", requestTimeout)
	case !errors.As(err, &r):
	case r.status == http.StatusUnauthorized:
		out.Hint = "give the address a user and a password, or an api-key: " + place.AddressHint
	case r.kind == "cluster_block_exception", r.kind == "index_closed_exception":
		out.Err = fmt.Errorf("%w: %w", store.ErrReadOnly, r)
	case r.kind == "strict_dynamic_mapping_exception", r.kind == "mapper_parsing_exception", r.kind == "document_parsing_exception":
		out.Hint = "the indices " + s.prefix + "-* do not have the mapping of carronade's template; give another prefix in the store's address"
	case r.status == http.StatusForbidden:
		out.Hint = "this user needs to read and write " + s.prefix + "-* and to manage index templates"
	case r.status == http.StatusTooManyRequests:
		out.Hint = "the cluster is overloaded; try again later"
	}
	for _, h := range hints {
		if errors.Is(out.Err, h.is) {
			out.Hint = h.hint
		}
	}
	return out
}
