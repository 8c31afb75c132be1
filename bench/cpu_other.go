//go:build !unix

package main

import "time"

var started = time.Now()

// cpuTime is the time since the program started: the CPU time of a process is not known here.
func cpuTime() time.Duration { return time.Since(started) }
