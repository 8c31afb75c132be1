package manager

import "github.com/ballast-lb/ballast/modular"

// shedders are the classes that the Modular load manager sheds by.
func shedders() (out []string) {
	for _, e := range modular.Shedders(modular.Options{}) {
		if e.Class != "" {
			out = append(out, e.Class)
		}
	}
	return out
}

// placers are the classes that the Modular load manager places by.
func placers() (out []string) {
	for _, e := range modular.Placers(modular.Options{}) {
		if e.Class != "" {
			out = append(out, e.Class)
		}
	}
	return out
}
