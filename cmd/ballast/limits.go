package main

import (
	"time"
	_ "time/tzdata" // maintenance windows name time zones, also where the system has no table of them

	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/settings"
)

// guardLimits are the guard's limits as the settings give them. An error names the window whose time zone is not known.
func guardLimits(l *settings.Layered) (guard.Limits, error) {
	return guard.FromSettings(l.Ballast, l.Settings, planLife, time.LoadLocation)
}

// limits are the guard's limits of the session.
func (s *session) limits() guard.Limits { return s.guard }
