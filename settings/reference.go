package settings

import (
	"cmp"
	"fmt"
	"strings"
)

// referenceHead and referenceTail are what the reference says besides the tables.
const (
	referenceHead = `# Configuration

Every setting of Ballast. This page is made from the tables in the code (package ` + "`settings`" + `).

## Where values come from

| from | wins over | form |
|---|---|---|
| defaults | | of the cluster's Pulsar version: 4.2.4, or 5.0.1 from Pulsar 5 on |
| the cluster | defaults | the runtime configuration that a broker reports over admin REST |
| files | the cluster | ` + "`.conf` or `.properties` (`key=value`, as in `broker.conf`), `.yaml`, `.yml`, `.json` (flat: key to value)" + ` |
| the environment | files | ` + "`BALLAST_` and the key in upper snake case (`BALLAST_LOAD_BALANCER_CPU_RESOURCE_WEIGHT`, `BALLAST_MODE`); `PULSAR_PREFIX_` and the key, as in Pulsar's images" + ` |
| flags | the environment | |

` + "`ballast config`" + ` shows every value and where it comes from; secrets show as ` + "`***`" + `.

- An unknown key is an error with the key that was probably meant. A ` + "`broker.conf` or a `client.conf`" + ` may hold other keys too: they are
  passed over, unless they look like a misspelt setting.
- A value that cannot be read or is out of range is an error that says what would be right. What a cluster already runs with is noted, not refused.
- Values that make no sense together are errors or warnings. A pair that the cluster itself runs with is a warning.
- Lists have commas between their items; brackets around them are allowed.

## Keys of broker.conf

These are Pulsar's own keys with Pulsar's defaults. *Changes act*: ` + "`now`" + ` at the next use after a dynamic change; ` + "`mixed`" + ` for some readers at once, for others
after a restart; ` + "`start`" + ` can be set dynamically, but is read only when a broker starts or becomes leader; ` + "`restart`" + ` is not dynamic.
*Read by*: S Simple, M Modular, X Extensible load manager, H host usage of every broker.
`
	referenceBallast = `
## Ballast's own keys

Durations are written with a unit: ` + "`30s`, `5m`, `1h30m`" + `.
`
	referenceTail = `
## Bandwidth weights

Pulsar once misspelt two keys. The effective weight of inbound bandwidth is ` + "`loadBalancerBandwidthInResourceWeight`" + ` if that is not 1.0, else
` + "`loadBalancerBandwithInResourceWeight`" + `; outbound likewise.
`
)

// Reference is the Markdown reference of all settings, docs/configuration.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	group := ""
	for _, k := range pulsarKeys {
		if k.Group != group {
			group = k.Group
			fmt.Fprintf(&b, "\n### %s\n\n| key | type | default | unit | allowed | changes act | read by | meaning |\n|---|---|---|---|---|---|---|---|\n", group)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s | %s |\n",
			k.Name, k.Type, k.defaults(), k.Unit, k.allowed(), k.Change, strings.Join(strings.Split(k.Users, ""), " "), k.meaning())
	}
	b.WriteString(referenceBallast)
	for _, k := range ballastKeys {
		if k.Group != group {
			group = k.Group
			fmt.Fprintf(&b, "\n### %s\n\n| key | type | default | unit | allowed | meaning |\n|---|---|---|---|---|---|\n", group)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", k.Name, k.Type, code(k.Default), k.Unit, k.allowed(), k.meaning())
	}
	b.WriteString(referenceTail)
	return b.String()
}

func (k Key) defaults() string {
	if k.Default == k.Default5 {
		return code(k.Default)
	}
	return cmp.Or(code(k.Default), "none") + "; Pulsar 5: " + cmp.Or(code(k.Default5), "none")
}

func (k Key) allowed() string {
	if len(k.OneOf) > 0 {
		return strings.Join(k.OneOf, ", ")
	}
	return strings.TrimPrefix(strings.TrimSpace(k.rangeText()), "of ")
}

func (k Key) meaning() string {
	text := k.Doc
	if k.Alias != "" {
		text += "; also read as " + code(k.Alias)
	}
	if k.Since != "" {
		text += "; since Pulsar " + k.Since
	}
	if k.Secret {
		text += "; secret"
	}
	return text
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}
