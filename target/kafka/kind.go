package kafka

import "carronade/target"

// Kind is Apache Kafka. It has no state.
type Kind struct{}

// Name implements target.Kind.
func (Kind) Name() string { return "kafka" }

// Schemes implements target.Kind.
func (Kind) Schemes() []string { return []string{"kafka"} }

// Ops implements target.Kind.
func (Kind) Ops() []string { return []string{opProduce, opConsume, opRoundTrip} }

// Options implements target.Kind.
func (Kind) Options() []target.Option { return options() }
