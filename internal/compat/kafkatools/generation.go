package kafkatools

import "fmt"

// A generation is a form that Kafka's tools had for some time: their options, lines and defaults.
type generation uint8

const (
	guessed generation = iota // from the options
	of2018                    // 0.10 to 1.1
	of41                      // 2.0 to 4.1
	of43                      // 4.2 and later
)

var generations = map[string]generation{"": guessed, "2018": of2018, "4.1": of41, "4.2": of43, "4.3": of43}

// askedGeneration reads the value of --generation for a tool whose first generation is since.
func askedGeneration(value string, since generation) (generation, error) {
	g, ok := generations[value]
	switch {
	case ok && (g == guessed || g >= since):
		return g, nil
	case since == of2018:
		return 0, fmt.Errorf("--generation %s: this tool has 2018, 4.1 and 4.3 (4.2 is the same)", value)
	}
	return 0, fmt.Errorf("--generation %s: this tool has 4.1, 4.2 and 4.3", value)
}

// version is the version of the tools that these replace.
const version = "4.3.1"

// mib is the tools' MB.
const mib = 1 << 20

// events is the tools' word for what they count.
func (g generation) events() string {
	if g == of43 {
		return "records"
	}
	return "messages"
}
