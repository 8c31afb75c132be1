package plan

import "github.com/ballast-lb/ballast/policy"

// FromPolicy is a reason of package policy, which cannot import this one, as a reason of a plan.
func FromPolicy(r policy.Reason) Reason {
	numbers := make([]Number, len(r.Numbers))
	for i, n := range r.Numbers {
		numbers[i] = Number(n)
	}
	return Reason{Code: r.Code, Text: r.Text, Numbers: numbers}
}
