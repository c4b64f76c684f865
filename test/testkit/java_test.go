package testkit

import (
	"testing"

	"carronade/test/testkit/assert"
)

func TestJavaVersion(t *testing.T) {
	tests := []struct {
		name, text string
		want       int
	}{
		{"with an update", `openjdk version "17.0.15" 2025-04-15`, 17},
		{"without one", `openjdk version "26" 2026-03-17`, 26},
		{"very old", `java version "1.8.0_202"`, 8},
		{"none", `no java here`, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, javaVersionIn(tt.text), tt.want)
		})
	}
}
