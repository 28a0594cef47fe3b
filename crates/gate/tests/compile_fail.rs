//! PROFILE §4.3: an effect without a permit, a permit twice, or a step of an act made by hand does not compile.

#[test]
fn the_doors_cannot_be_walked_round() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
