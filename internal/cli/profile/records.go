package profile

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	traffic "carronade/internal/profile"
	"carronade/payload"
	"carronade/units"
)

// A recordPlan turns the profile of records into a workload for Kafka.
type recordPlan struct {
	*traffic.Profile
	source  source
	target  string
	samples *samples // values to send instead of made ones; nil: none
	plan
}

// make fits what depends on other settings, and returns the workload.
func (r *recordPlan) make() (*plan, error) {
	r.set("target", r.target, "Not the source: set it to the system that you want to load.")
	if p := r.Partitions; p != nil {
		r.set("create-topic", "partitions="+strconv.Itoa(p.Partitions), r.partitionWords()...)
	}
	if r.samples == nil {
		r.set("size", r.Sizes.Text, "Sizes of values: "+sizeWords(r.Sizes))
	}
	keys, share := r.keys()
	headers := r.headers()
	if err := r.content(keys); err != nil {
		return nil, err
	}
	r.keySettings(keys, share)
	if len(headers) > 0 {
		r.setList("header", headers, r.headerWords()...)
	}
	if r.fresh(keys) {
		r.set("fresh", "true", "Each event has a size and a key of its own, instead of those of a pool that repeats.")
	}
	r.batching()
	setPace(&r.plan, &r.Pace, r.Records)
	return &r.plan, nil
}

// keys returns the keys of the workload, and the share of the records that have one.
func (r *recordPlan) keys() (text string, share float64) {
	k, digits := &r.Keys, 0
	if r.KeySizes != nil {
		digits = int(math.Round(r.KeySizes.Mean))
	}
	padded := func(form string, n uint64) string {
		if least := len(strconv.FormatUint(max(n, 1)-1, 10)); digits > least {
			return fmt.Sprintf("%s,%d)", form, min(digits, 4096))
		}
		return form + ")"
	}
	switch k.Family {
	case traffic.NoKeys:
		return "none", 0
	case traffic.UniqueKeys:
		text = "seq"
		if digits > 0 && digits != 12 {
			text = fmt.Sprintf("names(%d,10)", min(digits, 18))
		}
		if digits > 18 {
			text = fmt.Sprintf(`${string:format("%%0%dd", rnd.nextLong(1000000000000000000))}`, min(digits, 4000))
		}
	case traffic.UniformKeys:
		text = padded(fmt.Sprintf("uniform(%d", k.Keys), k.Keys)
	case traffic.ZipfKeys:
		text = padded(fmt.Sprintf("zipf(%d,%.4g", k.Keys, k.Zipf), k.Keys)
	}
	return text, k.Share
}

func (r *recordPlan) keySettings(text string, share float64) {
	k := &r.Keys
	about := []string{"Keys: " + keyWords(k)}
	if r.KeySizes != nil {
		about = append(about, "Sizes of keys: "+sizeWords(*r.KeySizes)+sizeNote(*r.KeySizes))
	}
	switch {
	case text == "none":
		r.set("key", text, "No record has a key.")
		return
	case share > 0.999:
		r.set("key", text, about...)
	default:
		about = append(about, fmt.Sprintf("%s of the records have no key.", units.FormatPercent(1-share)))
		weight := func(s float64) string { return strconv.FormatFloat(math.Round(s*10000)/100, 'f', -1, 64) }
		r.settings = append(r.settings, setting{name: "parts", about: about, parts: [][]setting{
			{{name: "weight", value: weight(share)}, {name: "key", value: text}},
			{{name: "weight", value: weight(1 - share)}, {name: "key", value: "none"}},
		}})
	}
	if r.Partitions != nil && r.Partitions.Partitions > 1 && k.OneLog > 0.95 {
		r.set("partitioner", "murmur2", fmt.Sprintf("Of the keys that occur several times, %s are in one partition.", units.FormatPercent(k.OneLog)))
	}
}

// fresh reports whether a pool of encoded events would have too few of them.
func (r *recordPlan) fresh(keys string) bool {
	return keys != "none" || r.Sizes.Family != traffic.Constant && r.samples == nil
}

// content sets the payload.
func (r *recordPlan) content(keys string) error {
	if r.samples != nil {
		r.set("payload", r.samples.payload(), fmt.Sprintf("Values: %s that were kept of the source.", units.Plural(r.samples.count(), "value")))
		return nil
	}
	c := r.Content
	if c.Codec == "" {
		r.set("payload", "random", "Content: the source has no values to measure.")
		return nil
	}
	events := 1
	if r.Batches != nil {
		events = int(math.Round(r.Batches.Events.Mean))
	}
	found, err := fitContent(c, payload.Spec{Seed: 1, Size: r.Sizes.Text, Key: keys, Headers: r.headers()}, events)
	if err != nil {
		return err
	}
	of := "its batches"
	if c.Of == "values" {
		of = "values, 64 KiB together"
	}
	r.set("payload", found.payload, fmt.Sprintf("Content: compresses to %s of its size by %s (%s). Events of this workload: %s.",
		units.FormatPercent(c.Ratio), c.Codec, of, units.FormatPercent(found.ratio)))
	return nil
}

// batching sets how events are put into batches.
func (r *recordPlan) batching() {
	b := r.Batches
	if b == nil {
		r.note("The source does not say how records were put into batches: batches are made of what is due.")
		return
	}
	if b.Codec != "" {
		about := "All batches have this codec."
		if len(b.Codecs) > 1 {
			about = fmt.Sprintf("%s of the batches; the others have other codecs.", units.FormatPercent(b.Codecs[b.Codec]))
		}
		r.set("compression", b.Codec, about)
	}
	events := max(1, int(math.Round(b.Events.Mean)))
	r.set("batch-events", strconv.Itoa(events), fmt.Sprintf("Records a batch: %d-%d, mean %.1f, p50 %d, p99 %d. Batches of the workload have the mean.",
		b.Events.Min, b.Events.Max, b.Events.Mean, b.Events.P50, b.Events.P99))
	const size = 256 << 10 // the default of batch-size
	if most := int64(2 * b.Bytes.Mean); most > size {
		r.set("batch-size", units.FlagSize((most+1023)&^1023), fmt.Sprintf("Bytes a batch, before compression: %d in the mean.", int(b.Bytes.Mean)))
		if most > 1<<20 {
			r.set("max-request", units.FlagSize((most+1023)&^1023), "A request has room for a batch.")
		}
	}
	if rate := r.Pace.Rate; r.Pace.Family != traffic.NoPace && rate > 0 {
		partitions := 1
		if r.Partitions != nil {
			partitions = r.Partitions.Partitions
		}
		fill := time.Duration(float64(events*partitions) / rate * float64(time.Second))
		if linger := fill * 3 / 2; linger > 5*time.Millisecond {
			r.set("linger", units.FlagDuration(min(linger.Round(time.Millisecond), time.Minute)), fmt.Sprintf("At the mean rate a batch is full after %s.", units.FormatDuration(fill)))
		}
	}
}

func (r *recordPlan) partitionWords() []string {
	p := r.Partitions
	if p.Partitions == 1 {
		return []string{"One partition."}
	}
	text := fmt.Sprintf("Partitions: from %s to %s of the records, the largest %.2f times an equal share.", units.FormatPercent(p.Smallest), units.FormatPercent(p.Largest), p.Skew)
	if p.Skew > 1.1 && r.Keys.OneLog <= 0.95 {
		text += " A workload cannot weight partitions: they get equal shares."
	}
	return []string{text}
}

// constantHeader is the share of records above which a header is in the workload.
const constantHeader = 0.5

// headers returns the headers of the workload.
func (r *recordPlan) headers() []string {
	var out []string
	for _, h := range r.Headers {
		if h.Share >= constantHeader && strings.TrimSpace(h.Name) != "" {
			out = append(out, escapeExpression(strings.ReplaceAll(h.Name, "=", "_"))+"="+r.headerValue(&h))
		}
	}
	return out
}

// headerValue is a text with the length and the number of distinct values of a header.
func (r *recordPlan) headerValue(h *traffic.HeaderFit) string {
	size := int(math.Round(h.Size.Mean))
	if h.Distinct <= 1 {
		return strings.Repeat("x", min(size, 4096))
	}
	n := uint64(h.Distinct)
	if h.More {
		n = 1_000_000_000_000_000_000
		if size < 18 {
			n = uint64(math.Pow10(max(size, 1)))
		}
	}
	if digits := len(strconv.FormatUint(n-1, 10)); size < digits {
		size = digits
	}
	return fmt.Sprintf(`${string:format("%%0%dd", rnd.nextLong(%d))}`, min(size, 4000), n)
}

// escapeExpression makes a text literal in a place for expressions.
func escapeExpression(text string) string {
	return strings.NewReplacer("${", "$${", "#{", "##{", "%{", "%%{").Replace(text)
}

func (r *recordPlan) headerWords() []string {
	about := []string{"Headers: made values with the lengths and the number of distinct values of the source's."}
	for _, h := range r.Headers {
		text := fmt.Sprintf("%s: in %s of the records, %s, %s", h.Name, units.FormatPercent(h.Share), h.Size, values(&h))
		if h.Share < constantHeader {
			text += "; not in the workload, whose headers are in every record"
		} else if h.Share < 0.999 {
			text += "; in every record of the workload"
		}
		about = append(about, text+".")
	}
	return about
}

func values(h *traffic.HeaderFit) string {
	if h.More {
		return fmt.Sprintf("more than %s distinct values", units.FormatCount(uint64(h.Distinct)))
	}
	return units.Plural(h.Distinct, "distinct value")
}
