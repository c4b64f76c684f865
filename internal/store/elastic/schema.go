package elastic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"carronade/internal/store"
)

// schemaVersion is the version of the documents below. It is in the template
// and in the mappings of the indices. Version 2 brought the intervals' unread, within_s and
// arrived; documents of version 1 are read as before, because their JSON is complete.
const schemaVersion = 2

// A reportDoc is the document of a run. Values for dashboards have separate
// fields; this package reads back only head and digest.
type reportDoc struct {
	Schema    int                `json:"schema_version"`
	At        string             `json:"@timestamp"` // start of the run
	StartedNS int64              `json:"started_ns"`
	KeptNS    int64              `json:"kept_ns"` // when it was first stored
	ID        string             `json:"id"`
	Hash      string             `json:"hash"`
	Target    string             `json:"target"`
	Op        string             `json:"op"`
	Equal     []string           `json:"fields"` // "name=text" of every field that is text
	Measured  map[string]float64 `json:"measured"`

	Owner   string `json:"owner"`   // the process of a run in progress
	BeatMS  int64  `json:"beat_ms"` // when it was last heard of
	Head    string `json:"head"`    // JSON
	Digest  []byte `json:"digest"`
	Version int    `json:"digest_version"`
}

// An intervalDoc is the document of an interval.
type intervalDoc struct {
	Schema     int     `json:"schema_version"`
	At         string  `json:"@timestamp"` // its end
	Report     string  `json:"report"`
	N          int     `json:"n"`
	Phase      string  `json:"phase"`
	StartS     float64 `json:"start_s"`
	EndS       float64 `json:"end_s"`
	Sum        string  `json:"sum"`
	Acked      uint64  `json:"acked"`
	Failed     uint64  `json:"failed"`
	Unknown    uint64  `json:"unknown"`
	Sent       uint64  `json:"sent"`
	Consumed   uint64  `json:"consumed"`
	Unread     uint64  `json:"unread"`
	WithinS    float64 `json:"within_s"`
	Arrived    uint64  `json:"arrived"`
	EventsPerS float64 `json:"events_per_s"`
	InFlight   uint64  `json:"in_flight"`

	ResponseP99 *float64 `json:"response_p99_us,omitempty"`
	ServiceP99  *float64 `json:"service_p99_us,omitempty"`
	EndToEndP99 *float64 `json:"end_to_end_p99_us,omitempty"`

	JSON string `json:"json"` // complete, as it is hashed
}

type object = map[string]any

// mapping describes the documents of both indices. It is strict for our names
// and open for others: text fields are stored as "name=text" in one field, so
// that names chosen by users can neither conflict nor be too many.
func mapping() object {
	keyword, long, double := object{"type": "keyword", "ignore_above": 1024}, object{"type": "long"}, object{"type": "double"}
	kept := object{"type": "keyword", "index": false, "doc_values": false}
	return object{
		"dynamic": "strict",
		"_meta":   object{"carronade": schemaVersion},
		"properties": object{
			"schema_version": long, "@timestamp": object{"type": "date"}, "started_ns": long, "kept_ns": long,
			"id": keyword, "hash": keyword, "target": keyword, "op": keyword, "fields": keyword,
			"measured": object{"type": "object", "dynamic": true},
			"owner":    object{"type": "keyword"}, "beat_ms": long, "head": kept, "digest": object{"type": "binary"}, "digest_version": long,

			"report": keyword, "n": long, "phase": keyword, "start_s": double, "end_s": double, "sum": kept,
			"acked": long, "failed": long, "unknown": long, "sent": long, "consumed": long,
			"unread": long, "within_s": double, "arrived": long, "events_per_s": double, "in_flight": long,
			"response_p99_us": double, "service_p99_us": double, "end_to_end_p99_us": double,
			"json": kept,
		},
		"dynamic_templates": []object{{"measured": object{
			"path_match": "measured.*", "mapping": double,
		}}},
	}
}

// prepare creates the template and the indices, adds what indices of an older program lack, and
// refuses those of a newer one.
func (s *Store) prepare(ctx context.Context) error {
	var found map[string]struct {
		Mappings struct {
			Meta struct {
				Version *int `json:"carronade"`
			} `json:"_meta"`
		} `json:"mappings"`
	}
	err := s.do(ctx, http.MethodGet, "/"+s.reports()+"/_mapping", nil, "", &found)
	switch {
	case status(err) == http.StatusNotFound:
	case err != nil:
		return err
	}
	older := false
	for name, index := range found {
		v := index.Mappings.Meta.Version
		switch {
		case v == nil:
			return fmt.Errorf("%w: the index %s was not made by carronade", store.ErrForeign, name)
		case *v > schemaVersion:
			return fmt.Errorf("%w: its schema is version %d and this one knows up to %d", store.ErrNewer, *v, schemaVersion)
		}
		older = older || *v < schemaVersion
	}
	if len(found) > 0 && !older {
		return nil
	}
	indices := []string{s.reports(), s.intervals()}
	settings := object{"index": object{"number_of_shards": 1, "codec": "best_compression", "auto_expand_replicas": "0-1"}}
	body, err := json.Marshal(object{
		"index_patterns": indices, "priority": 500, "version": schemaVersion,
		"template": object{"settings": settings, "mappings": mapping()},
	})
	if err != nil {
		return err
	}
	err = s.do(ctx, http.MethodPut, "/_index_template/"+s.prefix, body, jsonType, nil)
	if code := status(err); code == http.StatusNotFound || code == http.StatusMethodNotAllowed || code == http.StatusBadRequest {
		// Elasticsearch before 7.8 has templates of the older form.
		if body, err = json.Marshal(object{"index_patterns": indices, "order": 500, "version": schemaVersion, "settings": settings, "mappings": mapping()}); err != nil {
			return err
		}
		err = s.do(ctx, http.MethodPut, "/_template/"+s.prefix, body, jsonType, nil)
	}
	if older {
		return s.migrate(ctx, err)
	}
	for _, index := range indices { // if the first document created them, they could not be searched at once
		if err == nil {
			err = s.do(ctx, http.MethodPut, "/"+index, nil, "", nil)
			if r, ok := errors.AsType[*statusError](err); ok && r.kind == "resource_already_exists_exception" {
				err = nil
			}
		}
	}
	return err
}

// migrate adds the fields of this version to the indices, unless there was an error before. The index of
// reports is last: its version says that both were changed.
func (s *Store) migrate(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	body, err := json.Marshal(mapping())
	for _, index := range []string{s.intervals(), s.reports()} {
		if err == nil {
			err = s.do(ctx, http.MethodPut, "/"+index+"/_mapping", body, jsonType, nil)
		}
	}
	return err
}
