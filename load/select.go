package load

import "slices"

// SelectGreatest arranges a so that its first k slots hold the k greatest elements, greatest first. It is the quickselect
// of Pulsar's TopKBundles step by step: which of elements that compare equal are taken depends on its moves.
// Pulsar: TopKBundles.partitionSort.
func SelectGreatest[T any](a []T, k int, compare func(x, y *T) int) {
	start, end, target := 0, len(a)-1, k-1
	for start < end {
		low, high, mid := start, end, start
		pivot := a[end]
		for mid <= high {
			switch c := compare(&pivot, &a[mid]); {
			case c < 0:
				a[low], a[mid] = a[mid], a[low]
				low++
				mid++
			case c > 0:
				a[mid], a[high] = a[high], a[mid]
				high--
			default:
				mid++
			}
		}
		if low <= target && target < mid {
			end = low
			break
		}
		if target < low {
			end = low - 1
		} else {
			start = mid
		}
	}
	slices.SortStableFunc(a[:max(end, 0)], func(x, y T) int { return compare(&y, &x) })
}
