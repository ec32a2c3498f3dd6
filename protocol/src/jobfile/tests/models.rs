//! The keys of `[[model]]` and what is trained with them: options, augmentation, precision.

use super::*;

#[test]
fn the_options_of_models_are_read() {
    let text = FULL.replace(
        "channels = [16, 32]",
        "channels = [16, 32]
pool = { choice = [\"average\", \"none\"] }
pool_every = 2
hidden = [64]
batch_norm = { choice = [false, true] }
dropout = { uniform = [0, 0.5] }
[[model]]
arch = \"resnet\"
depth = { choice = [11, 20] }
[[model]]
arch = \"mlp\"
hidden = []
batch_norm = true
dropout = 0.25",
    );
    let range = Range::new(Spread::Uniform, 0.0, 0.5);
    let cnn = CnnSpace {
        channels: vec![16, 32].into(),
        pool: Dimension::Choice(vec![Pool::Average, Pool::None]),
        pool_every: 2.into(),
        hidden: vec![64].into(),
        batch_norm: Dimension::Choice(vec![false, true]),
        dropout: Dimension::Range(range),
    };
    let resnet = ResnetSpace { depth: Dimension::Choice(vec![11, 20]), width: 16.into() };
    let mlp =
        MlpSpace { hidden: vec![].into(), batch_norm: true.into(), dropout: Ratio(0.25).into() };
    assert_eq!(
        parse(&text).unwrap().models[1..],
        [ModelSpace::Cnn(cnn), ModelSpace::Resnet(resnet), ModelSpace::Mlp(mlp)]
    );
}

#[test]
fn options_that_make_no_model_are_refused() {
    let cnn = |line: &str| {
        let shape = "label = \"y\"\nshape = [1, 8, 8]";
        let table = format!("arch = \"cnn\"\nchannels = [8]\n{line}");
        errors_of(
            &SMALL.replace("label = \"y\"", shape).replace("arch = \"mlp\"\nhidden = [8]", &table),
        )
    };
    assert_eq!(
        cnn("pool = \"mean\""),
        "9: `model[0].pool` is `\"mean\"`; did you mean `max`? one of `max`, `average`, `none` is wanted"
    );
    assert_eq!(
        cnn("pool_every = 0"),
        "9: `model[0].pool_every` is 0; a whole number, at least 1, is wanted"
    );
    assert_eq!(
        cnn("dropout = 1"),
        "9: `model[0].dropout` is 1; a number of at least 0 and below 1 is wanted"
    );
    assert_eq!(
        cnn("batch_norm = 1"),
        "9: `model[0].batch_norm` is a whole number (`1`); `true` or `false` is wanted"
    );
    assert_eq!(cnn("depth = 20"), "9: `model[0].depth` is a key of `arch = \"resnet\"`");
    let resnet = |lines: &str| {
        let shape = "label = \"y\"\nshape = [1, 8, 8]";
        let table = format!("arch = \"resnet\"\n{lines}");
        errors_of(
            &SMALL.replace("label = \"y\"", shape).replace("arch = \"mlp\"\nhidden = [8]", &table),
        )
    };
    assert_eq!(
        resnet("depth = { choice = [20, 21] }"),
        "8: `model[0].depth` is 21; 9n + 2 is wanted: 11, 20, 29, and so on"
    );
    assert_eq!(
        resnet("depth = { int = [11, 20] }"),
        "8: `model[0].depth` can't be a range: it must be 9n + 2; `choice` is the way to search over it"
    );
    assert_eq!(resnet(""), "6: `model[0].depth` is missing: 9n + 2: 11, 20, 29, and so on");
    assert_eq!(
        resnet("depth = 11\nbatch_norm = true"),
        "9: `model[0].batch_norm` is a key of `arch = \"mlp\"` and `arch = \"cnn\"`"
    );
    assert_eq!(
        errors_with("arch = \"mlp\"\nhidden = [8]", "arch = \"resnet\"\ndepth = 11"),
        "6: `model[0].arch` is `\"resnet\"`, which needs `data.shape = [channels, height, width]`"
    );
}

#[test]
fn augmentation_and_precision_are_read() {
    let lines = "clip_norm = 0
precision = { choice = [\"f32\", \"bf16\"] }
augment = { crop = { int = [0, 2] }, flip = true }";
    let text = FULL.replace("clip_norm = { uniform = [0, 1.5], points = 2 }", lines);
    let training = parse(&text).unwrap().training;
    assert_eq!(training.precision, Dimension::Choice(vec![Precision::F32, Precision::Bf16]));
    let range = Range::new(Spread::Integer, 0.0, 2.0);
    let augment = AugmentSpace { crop: Dimension::Range(range), flip: true.into() };
    assert_eq!(training.augment, augment);
    let training = parse(FULL).unwrap().training;
    assert_eq!(training.augment, AugmentSpace::default());
    assert_eq!(training.precision, Dimension::Fixed(Precision::F32));
}

#[test]
fn augmentation_and_precision_that_make_no_sense_are_refused() {
    let training = |line: &str| errors_with("epochs = 2", &format!("epochs = 2\n{line}"));
    assert_eq!(
        training("augment = { flip = true }"),
        "10: `training.augment` takes images: `data.shape = [channels, height, width]` is wanted"
    );
    assert_eq!(
        training("augment = true"),
        "10: `training.augment` is a boolean (`true`); a table is wanted"
    );
    assert_eq!(
        training("precision = \"fp16\""),
        "10: `training.precision` is `\"fp16\"`; did you mean `bf16`? one of `f32`, `bf16` is wanted"
    );
    let image = |line: &str| errors_of(&FULL.replace("epochs = 3", &format!("epochs = 3\n{line}")));
    assert_eq!(
        image("augment = { crop = 9 }"),
        "19: `training.augment.crop` goes up to 9, more than the images' shorter side, 8"
    );
    assert_eq!(
        image("augment = { crops = 2 }"),
        "19: `training.augment.crops` is no known key; did you mean `crop`?"
    );
    assert_eq!(
        image("augment = { flip = 1 }"),
        "19: `training.augment.flip` is a whole number (`1`); `true` or `false` is wanted"
    );
}

#[test]
fn an_optimizer_may_be_a_word_and_adamw_decays_by_default() {
    let job = parse(&SMALL.replace("epochs = 2", "epochs = 2\noptimizer = \"adamw\"")).unwrap();
    assert_eq!(job.training.optimizer.name, Dimension::Fixed(OptimizerName::Adamw));
    assert_eq!(job.training.optimizer.weight_decay, Dimension::Fixed(0.01));
}
