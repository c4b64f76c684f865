//go:build !linux

package system

import (
	"context"
	"errors"
)

// A DiskFill takes the free space of a filesystem, on Linux.
type DiskFill struct{}

var errNoFill = errors.New("a filesystem can be filled only on Linux")

// CanFill returns why the filesystem of a folder cannot be filled.
func CanFill(string, ...string) error { return errNoFill }

// NewDiskFill opens a file that takes space, on Linux.
func NewDiskFill(string) (*DiskFill, error) { return nil, errNoFill }

// Fill takes all space that is free now, on Linux.
func (*DiskFill) Fill(context.Context) (int64, error) { return 0, errNoFill }

// Close frees the space.
func (*DiskFill) Close() error { return nil }
