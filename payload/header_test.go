package payload

import (
	"fmt"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

func TestHeadersOfEvents(t *testing.T) {
	for _, tt := range []struct {
		name    string
		headers []string
		vary    bool
		want    []string // of event 7, as name=value
	}{
		{"none", nil, false, nil},
		{"constant", []string{"a=b", "c=d=e", "empty=", "price=$5 {x}"}, false, []string{"a=b", "c=d=e", "empty=", "price=$5 {x}"}},
		{"escaped", []string{"a=$${b}"}, false, []string{"a=${b}"}},
		{"constant expressions", []string{"a-${1 + 1}=%{2 * 3}"}, false, []string{"a-2=6"}},
		{"in names and values", []string{"n-${this.last() + 1}%{-1}=${1 == 1 ? 'x=y' : ''}", "a=b"}, true, []string{"n-7=x=y", "a=b"}},
		{"an = in an expression of a name", []string{"${1 == 1}-${rnd.nextInt(1)}=v"}, true, []string{"true-0=v"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := generator(t, Spec{Seed: 1, Headers: tt.headers})
			if g.HeadersVary() != tt.vary || g.NumHeaders() != len(tt.want) || (Spec{Headers: tt.headers}).Varies() != tt.vary {
				t.Errorf("vary: %t, %d headers", g.HeadersVary(), g.NumHeaders())
			}
			for i, want := range tt.want {
				out, name := g.AppendHeader([]byte("before"), i, 7)
				out = out[len("before"):]
				assert.Equal(t, fmt.Sprintf("%s=%s", out[:name], out[name:]), want)
				if !tt.vary && (g.Headers()[i].Key+"="+string(g.Headers()[i].Value) != want || g.Headers()[i].Value == nil) {
					t.Errorf("got %q of every event, want %s", g.Headers()[i], want)
				}
			}
			assert.True(t, !tt.vary || g.Headers() == nil, "headers that vary are said to be those of every event")
		})
	}
}

// Headers and keys of an event depend on the seed and its number; each header draws numbers
// of its own.
func TestExpressionsAreReproducible(t *testing.T) {
	const draw = "${rnd.nextLong()}"
	s := Spec{Seed: 1, Key: draw, Headers: []string{draw + "=" + draw, "a=" + draw}}
	a, b := generator(t, s), generator(t, s)
	s.Seed = 2
	other := generator(t, s)
	seen := map[string]bool{}
	for n := range uint64(100) {
		for i := -1; i < 2; i++ {
			made := func(g *Generator) []string {
				if i < 0 {
					return []string{string(g.AppendKey(nil, n))}
				}
				out, name := g.AppendHeader(nil, i, n)
				return []string{string(out[:name]), string(out[name:])}
			}
			x, y, z := made(a), made(b), made(other)
			for j := range x {
				if x[j] == "a" {
					continue
				}
				if x[j] != y[j] || x[j] == z[j] || seen[x[j]] {
					t.Errorf("event %d, header %d: %q, again %q, of another seed %q", n, i, x[j], y[j], z[j])
				}
				seen[x[j]] = true
			}
		}
	}
	assert.Equal(t, len(seen), 400, "texts")
}

func TestKeyExpressions(t *testing.T) {
	g := generator(t, Spec{Seed: 1, Key: "user-${rnd.nextInt(1000)}"})
	if !g.HasKey() || !(Spec{Key: "user-${rnd.nextInt(1000)}"}).Varies() || g.MaxKeySize() < len("user-999") {
		t.Errorf("has key %t, at most %d bytes", g.HasKey(), g.MaxKeySize())
	}
	seen := map[string]bool{}
	for n := range uint64(1000) {
		key := string(g.AppendKey(nil, n))
		assert.Must(t, strings.HasPrefix(key, "user-") && len(key) <= g.MaxKeySize(), "got %s", key)
		seen[key] = true
	}
	assert.True(t, len(seen) >= 500, "only %d keys", len(seen))
	t.Setenv("CARRONADE_TEST_KEY", "a")
	if env := generator(t, Spec{Key: `%{env:get("CARRONADE_TEST_KEY")}-${rnd.nextInt(9)}`}); !env.KeyUsesEnv() || g.KeyUsesEnv() || generator(t, Spec{Key: "seq"}).KeyUsesEnv() {
		t.Errorf("keys use the environment: %t and %t", env.KeyUsesEnv(), g.KeyUsesEnv())
	}
	got := g.Describe()
	assert.True(t, strings.Contains(got, "key user-${rnd.nextInt(1000)}"), "got %q", got)
	if (Spec{Key: "%{rnd.nextInt(1000)}"}).Varies() || (Spec{Key: "${foo}"}).Varies() || (Spec{Key: "seq", Headers: []string{"a=b"}}).Varies() {
		t.Error("a constant, an error or a distribution of keys varies")
	}
}

func TestExpressionErrors(t *testing.T) {
	for _, tt := range []struct {
		spec Spec
		want string
	}{
		{Spec{Key: "user-${foo}"}, `key "user-${foo}": at 8: foo is not known`},
		{Spec{Key: "${time:nanos()}"}, "at 3: this is the current time, but this text must be the same whenever it is needed"},
		{Spec{Key: "#{1}"}, "at 1: #{...} changes with time"},
		{Spec{Headers: []string{"a${=1"}}, "no name and value"},
		{Spec{Headers: []string{"a-${foo}=1"}}, `header "a-${foo}=1": at 5: foo`},
		{Spec{Headers: []string{"name=a-${foo}"}}, `header "name=a-${foo}": at 10: foo`},
		{Spec{Headers: []string{"a=${"}}, "at 3: it has no closing }; write $${ for a literal ${"},
		{Spec{Headers: []string{"a=${time:nanos()}"}, Pooled: true}, "events are made before the run here"},
	} {
		_, err := New(tt.spec)
		assert.ErrorHas(t, err, tt.want, "%+v", tt.spec)
	}
	assert.Value(New(Spec{Headers: []string{"a=${time:nanos()}"}}))(t, "a header as it is sent")
}
