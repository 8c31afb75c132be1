// Package integration holds the tests that run against a real Pulsar cluster in containers. They have the build tag
// "integration"; `make integration` runs them, `make verify` runs them at full length on every supported version.
//
// A test takes the shared cluster and gets it in its original state: every broker up, no dynamic configuration, no
// namespace left by another test:
//
//	func TestSomething(t *testing.T) {
//		c := shared(t)                                  // three brokers, Extensible
//		ns := c.CreateNamespace(t, 32)                  // "test/something-1", 32 bundles
//		hot := c.Brokers()[0]
//		c.Place(t, ns, hot)                             // all bundles on one broker
//		layout := traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: 500, Seed: 1})
//		run := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{})
//		c.Brokers()[1].Kill(t)                          // also Stop, Pause, Cut, and c.AddBroker
//		report := run.Stop(t)                           // report.Err() tells what was lost or out of order
//	}
//
// A test that needs another configuration asks for it, and gets the same cluster as other tests that ask for the same:
//
//	c := pool.Get(t, harness.Options{Manager: harness.Modular, Conf: map[string]string{"loadBalancerHistoryResourcePercentage": "0"}})
//
// Tests that use clusters are not parallel; a cluster that is not in use may stay up for later tests. Figures worth keeping are recorded with
// harness.Figure; they end up in docs/verification.md. Environment:
//
//	BALLAST_PULSAR_VERSION  the version of the image built here: 4.2.4 (default) or 5.0.1
//	BALLAST_PULSAR_IMAGE    another image instead, such as apachepulsar/pulsar:4.2.4
//	BALLAST_FULL            not empty: full lengths (harness.Full)
//	BALLAST_LOGS            where the containers' logs go when a test fails (default: ballast-logs in the temporary directory)
package integration
