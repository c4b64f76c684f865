package elastic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"carronade/internal/report"
	"carronade/internal/store"
)

// A storedReport is a report's document with its version.
type storedReport struct {
	reportDoc
	version
}

// head reads the current document of a report.
func (s *Store) head(ctx context.Context, id string) (*storedReport, error) {
	var answer struct {
		Found  bool      `json:"found"`
		Source reportDoc `json:"_source"`
		version
	}
	err := s.do(ctx, http.MethodGet, "/"+s.reports()+"/_doc/"+url.PathEscape(id), nil, "", &answer)
	if status(err) == http.StatusNotFound || err == nil && !answer.Found {
		return nil, store.ErrMissing
	}
	return &storedReport{answer.Source, answer.version}, err
}

// Get implements store.Store. A report is checked against its hash.
func (s *Store) Get(ctx context.Context, id string) (*report.Document, error) {
	d, err := s.get(ctx, id)
	return d, s.fail("read report "+id, err)
}

func (s *Store) get(ctx context.Context, id string) (*report.Document, error) {
	k, err := s.head(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.load(ctx, k)
}

// load makes a document from its parts. One whose run is in progress, or was
// killed, is assembled.
func (s *Store) load(ctx context.Context, k *storedReport) (*report.Document, error) {
	if k.Schema > schemaVersion {
		return nil, fmt.Errorf("%w: the document's schema is version %d", store.ErrNewer, k.Schema)
	}
	var intervals [][]byte
	err := s.eachInterval(ctx, k.ID, []string{"json"}, func(h *hit) (bool, error) {
		var doc intervalDoc
		if err := json.Unmarshal(h.Source, &doc); err != nil {
			return false, err
		}
		intervals = append(intervals, []byte(doc.JSON))
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	d, err := report.Join([]byte(k.Head), intervals)
	if err != nil {
		return nil, err
	}
	if k.Owner != "" {
		return report.Assemble(d, d.Intervals), nil
	}
	if err := d.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	return d, nil
}

// eachInterval calls f with a report's intervals in the order of their starts.
func (s *Store) eachInterval(ctx context.Context, id string, source []string, f func(h *hit) (bool, error)) error {
	sort := []map[string]any{{"start_s": "asc"}, {"n": "asc"}}
	return s.search(ctx, s.intervals(), object{"term": object{"report": id}}, sort, source, f)
}

// newestFirst is the order of reports: by start, and if that is equal, by when
// they were stored.
var newestFirst = []map[string]any{{"started_ns": "desc"}, {"kept_ns": "desc"}, {"id": "asc"}}

// Rows implements store.Store. The cluster's search excludes only what
// certainly does not match; the filters are those of every store.
func (s *Store) Rows(ctx context.Context, q store.Query) ([]store.Row, error) {
	killed, err := s.finishKilled(ctx)
	if err != nil {
		return nil, s.fail("list the reports", err)
	}
	m := store.NewMatcher(q.Filters)
	rows, err := s.rows(ctx, q, m, killed)
	if err == nil {
		err = m.Err()
		return rows, err // the error is for users already
	}
	return nil, s.fail("list the reports", err)
}

func (s *Store) rows(ctx context.Context, q store.Query, m *store.Matcher, killed map[string]*reportDoc) ([]store.Row, error) {
	query := object{"match_all": object{}}
	if !q.Since.IsZero() {
		query = object{"range": object{"started_ns": object{"gte": q.Since.UnixNano()}}}
	}
	chosen := store.Select(q.Fields)
	var out []store.Row
	err := s.search(ctx, s.reports(), query, newestFirst, []string{"id", "owner", "beat_ms", "digest", "digest_version"}, func(h *hit) (bool, error) {
		var k storedReport
		if err := json.Unmarshal(h.Source, &k.reportDoc); err != nil {
			return false, err
		}
		if made := killed[h.ID]; made != nil {
			k.Digest, k.Version, k.Owner = made.Digest, made.Version, "" // the stored one was made when the run began
		}
		row, err := s.row(ctx, &k)
		if err != nil {
			return false, err
		}
		if !m.Match(&row) {
			return true, nil
		}
		row.Running = k.Owner != "" && alive(&k)
		if q.Fields != nil {
			var fields []store.Field
			for i := range row.Fields {
				if chosen.Keeps(&row.Fields[i]) {
					fields = append(fields, row.Fields[i])
				}
			}
			row.Fields = fields
		}
		out = append(out, row)
		return q.Limit <= 0 || len(out) < q.Limit, nil
	})
	return out, err
}

// row returns the row of a report, made again if another version of it was stored.
func (s *Store) row(ctx context.Context, k *storedReport) (store.Row, error) {
	if k.Version == store.RowVersion {
		return store.UnmarshalRow(k.Digest)
	}
	whole, err := s.head(ctx, k.ID)
	if err != nil {
		return store.Row{}, err
	}
	d, err := report.Join([]byte(whole.Head), nil)
	if err != nil {
		return store.Row{}, err
	}
	return store.RowOf(d), nil
}

// Find implements store.Store.
func (s *Store) Find(ctx context.Context, prefix string, n int) ([]string, error) {
	if n <= 0 {
		return nil, nil
	}
	query := object{"prefix": object{"id": prefix}}
	if prefix == "" {
		query = object{"match_all": object{}}
	}
	var out []string
	err := s.search(ctx, s.reports(), query, newestFirst, []string{"id"}, func(h *hit) (bool, error) {
		out = append(out, h.ID)
		return len(out) < n, nil
	})
	return out, s.fail("look for reports", err)
}

// alive reports whether the process that writes a report is still there.
func alive(k *storedReport) bool { return store.Alive(k.Owner, time.UnixMilli(k.BeatMS)) }

// finishKilled finishes the reports whose process is gone. It returns the
// documents of those that could not be written, so that users without write
// permission can still read.
func (s *Store) finishKilled(ctx context.Context) (unwritten map[string]*reportDoc, err error) {
	query := object{"bool": object{"must": []object{{"exists": object{"field": "owner"}}}, "must_not": []object{{"term": object{"owner": ""}}}}}
	var dead []*storedReport
	err = s.search(ctx, s.reports(), query, newestFirst, nil, func(h *hit) (bool, error) {
		k := &storedReport{version: h.version}
		if err := json.Unmarshal(h.Source, &k.reportDoc); err != nil {
			return false, err
		}
		if !alive(k) {
			dead = append(dead, k)
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	if len(dead) > 0 { // to find their last intervals, too
		err := s.do(ctx, http.MethodPost, "/"+s.intervals()+"/_refresh?ignore_unavailable=true", nil, "", nil)
		if status(err) != http.StatusNotFound && ignoreForbidden(err) != nil {
			return nil, err
		}
	}
	for _, k := range dead {
		d, err := s.load(ctx, k)
		if err != nil {
			return nil, fmt.Errorf("assemble report %s, whose run was killed: %w", k.ID, err)
		}
		doc, err := reportDocOf(d)
		if err != nil {
			return nil, err
		}
		doc.KeptNS = k.KeptNS
		var claimed *version
		if err = s.ready(ctx); err == nil { // the indices may be an older program's
			claimed, err = s.claim(ctx, k)
		}
		if err == nil {
			err = s.putIntervals(ctx, d)
		}
		if err == nil {
			err = s.bulk(ctx, true, action{verb: "index", index: s.reports(), id: k.ID, doc: doc, ifAt: claimed})
		}
		switch {
		case err == nil, status(err) == http.StatusConflict: // another process finished it
		case ignoreForbidden(err) != nil:
			return nil, err
		default:
			if unwritten == nil {
				unwritten = make(map[string]*reportDoc)
			}
			unwritten[k.ID] = doc
		}
	}
	return unwritten, nil
}

// ignoreForbidden drops the error of a forbidden write: reading goes on.
func ignoreForbidden(err error) error {
	if r, ok := errors.AsType[*statusError](err); ok && (r.status == http.StatusForbidden || r.kind == "cluster_block_exception") {
		return nil
	}
	return err
}
