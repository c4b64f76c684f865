package standin

import (
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

func TestDocumentsOfV1Refused(t *testing.T) {
	t.Parallel()
	service := `"service":{"name":"a","agent":{"name":"b","version":"1"}}`
	tx := `{"id":"945254c5-67a5-417e-8a4e-aa29efcbfb79","timestamp":"2026-11-21T13:00:00.000Z","name":"n","type":"t","duration":1`
	tests := []struct{ name, in, want string }{
		{"good", `{` + service + `,"transactions":[` + tx + `}]}`, ""},
		{"text after it", `{` + service + `,"transactions":[` + tx + `}]}]`, ""},
		{"no service", `{"transactions":[` + tx + `}]}`, "service: required"},
		{"no transactions", `{` + service + `,"transactions":[]}`, "at least 1"},
		{"an invalid id", `{` + service + `,"transactions":[` + strings.Replace(tx, "945254c5-", "", 1) + `}]}`, "transactions[0].id"},
		{"a parent without id", `{` + service + `,"transactions":[` + tx + `,"spans":[{"name":"n","type":"t","start":1,"duration":1,"parent":3}]}]}`, "parent requires id"},
		{"not JSON", `{` + service + `,`, "not JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var j validator
			err := j.document(allRules().transactions, []byte(tt.in))
			assert.True(t, (err == nil) == (tt.want == "") && (err == nil || strings.Contains(err.Error(), tt.want)),
				"got %v, want %q", err, tt.want)
		})
	}
}
